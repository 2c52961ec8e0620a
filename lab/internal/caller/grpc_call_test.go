package caller

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// grpcMessages are n messages of some bytes each.
func grpcMessages(n, size int) func(uint64) [][]byte {
	all := [][]byte{}
	for range n {
		all = append(all, bytes.Repeat([]byte("x"), size))
	}
	return func(uint64) [][]byte { return all }
}

// Each kind of call ends well, and what went over is counted.
func TestKinds(t *testing.T) {
	s := serveGRPC(t, "tcp", "127.0.0.1:0", "one")
	for _, tc := range []struct {
		method                   string
		clientStreams, serverToo bool
		messages, size           int
		sent, received           traffic.Volume
	}{
		{"Echo", false, false, 1, 5, traffic.Volume{Messages: 1, Bytes: 5}, traffic.Volume{Messages: 1, Bytes: 5}},
		{"Echo", false, false, 1, 0, traffic.Volume{Messages: 1}, traffic.Volume{Messages: 1}},
		{"Trailer", false, false, 1, 5, traffic.Volume{Messages: 1, Bytes: 5}, traffic.Volume{Messages: 1, Bytes: 5}},
		{"Count", false, true, 1, 7, traffic.Volume{Messages: 1, Bytes: 7}, traffic.Volume{Messages: 3, Bytes: 21}},
		{"Sum", true, false, 4, 10, traffic.Volume{Messages: 4, Bytes: 40}, traffic.Volume{Messages: 1, Bytes: 8}},
		{"Sum", true, false, 0, 0, traffic.Volume{}, traffic.Volume{Messages: 1, Bytes: 8}},
		{"Each", true, true, 1, 10, traffic.Volume{Messages: 1, Bytes: 10}, traffic.Volume{Messages: 1, Bytes: 10}},
		// More than all windows hold, in both directions at a time.
		{"Each", true, true, 300, 4096, traffic.Volume{Messages: 300, Bytes: 300 * 4096}, traffic.Volume{Messages: 300, Bytes: 300 * 4096}},
	} {
		c := grpcClientOf(t, s, tc.method, func(o *Options) {
			o.ClientStreams, o.ServerStreams, o.Messages = tc.clientStreams, tc.serverToo, grpcMessages(tc.messages, tc.size)
		})
		before := time.Now()
		answer := c.Call(t.Context(), traffic.Call{Deadline: before.Add(time.Minute)})
		if answer.Code != 0 || answer.Worker != "one" || answer.Sent != tc.sent || answer.Received != tc.received {
			t.Errorf("%s: %+v", tc.method, answer)
		}
		if tc.serverToo != answer.First.After(before) {
			t.Errorf("%s: the first message came at %v, after %v", tc.method, answer.First, before)
		}
	}
}

// A failure has its code and its text, in each kind of call.
func TestFailures(t *testing.T) {
	s := serveGRPC(t, "tcp", "127.0.0.1:0", "one")
	for _, streams := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
		for _, tc := range []struct {
			method  string
			timeout time.Duration
			code    codes.Code
			text    string
		}{
			{"Fail", time.Minute, codes.ResourceExhausted, "no thread is free"},
			{"Refuse", time.Minute, codes.PermissionDenied, "not you"},
			{"Hang", 20 * time.Millisecond, codes.DeadlineExceeded, ""},
			{"Echo", -time.Second, codes.DeadlineExceeded, "deadline"},
		} {
			c := grpcClientOf(t, s, tc.method, func(o *Options) {
				o.ClientStreams, o.ServerStreams = streams[0], streams[1]
				if streams[0] {
					o.Messages = grpcMessages(300, 4096) // so that sending does not end by itself
				}
			})
			answer := c.Call(t.Context(), traffic.Call{Deadline: time.Now().Add(tc.timeout)})
			if codes.Code(answer.Code) != tc.code || !strings.Contains(answer.Message, tc.text) {
				t.Errorf("%s, streams %v: %+v", tc.method, streams, answer)
			}
		}
		c := grpcClientOf(t, s, "Hang", func(o *Options) { o.ClientStreams, o.ServerStreams = streams[0], streams[1] })
		ctx, cancel := context.WithCancel(t.Context())
		before := s.calls.Load()
		go func() {
			testkit.Eventually(t, 30*time.Second, "the call to arrive", func() bool { return s.calls.Load() > before })
			cancel()
		}()
		if answer := c.Call(ctx, traffic.Call{}); codes.Code(answer.Code) != codes.Canceled {
			t.Errorf("given up, streams %v: %+v", streams, answer)
		}
	}
}

// A load over each strategy: every call is answered, and the connections that it
// opens are counted as the server counts them.
func TestGRPCStrategies(t *testing.T) {
	for _, tc := range []struct {
		strategy Strategy
		conns    int64
	}{
		{Single, 1},
		{3, 3},
		{PerCall, 100},
		{RoundRobin, 1}, // of an address there is only one
	} {
		t.Run(tc.strategy.String(), func(t *testing.T) {
			s := serveGRPC(t, "tcp", "127.0.0.1:0", "one")
			c := grpcClientOf(t, s, "Echo", func(o *Options) { o.Strategy = tc.strategy })
			plan, err := traffic.Options{Rate: "1000", Duration: 100 * time.Millisecond, Timeout: 20 * time.Second, Grace: 30 * time.Second, Most: tc.strategy.MostUnderWay()}.Plan()
			if err != nil {
				t.Fatal(err)
			}
			r, err := traffic.New(plan, c).Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if r.Calls.Answered.Count() != 100 || r.Workers["one"] != 100 || r.Sent.Bytes != 500 || r.Received.Bytes != 500 {
				t.Errorf("%d answered, %v, %+v, %v", r.Calls.Answered.Count(), r.Workers, r.Received, r.Failures)
			}
			if r.Opened != tc.conns || s.conns.Load() != tc.conns {
				t.Errorf("%d connections opened, %d accepted, want %d", r.Opened, s.conns.Load(), tc.conns)
			}
		})
	}
}

// Calls over a Unix socket, and metadata.
func TestGRPCUnixSocket(t *testing.T) {
	path := t.TempDir() + "/s"
	s := serveGRPC(t, "unix", path, "one")
	c := grpcClientOf(t, s, "Echo", func(o *Options) { o.Target, o.Metadata = "unix://"+path, metadata.Pairs("a", "b") })
	if answer := c.Call(t.Context(), traffic.Call{}); answer.Code != 0 || c.Opened() != 1 {
		t.Errorf("%+v, %d connections", answer, c.Opened())
	}
}

// The answer of a call with a connection of its own ends before the connection does.
func TestClosingIsNotInTheLatency(t *testing.T) {
	s := serveGRPC(t, "tcp", "127.0.0.1:0", "one")
	c := grpcClientOf(t, s, "Echo", func(o *Options) { o.Strategy = PerCall })
	if answer := c.Call(t.Context(), traffic.Call{}); answer.Ended.IsZero() || answer.Code != 0 {
		t.Errorf("%+v", answer)
	}
}
