package caller

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Each way has the answers that grpc-go has, of the same server, in each kind of call.
func TestWaysAgree(t *testing.T) {
	s := serve(t, nil)
	big := strings.Repeat("x", 4096)
	for _, tc := range []struct {
		method   string
		messages int
		value    string
		code     codes.Code
		received int64
		worker   string
	}{
		{"Unary", 1, "hello", codes.OK, 1, "one"},
		{"Unary", 1, "", codes.OK, 1, "one"},
		{"Unary", 1, "fail", codes.ResourceExhausted, 0, "two"},
		{"Server", 1, "hello", codes.OK, 3, "one"},
		{"Server", 1, "fail", codes.ResourceExhausted, 0, "one"},
		{"Server", 1, "late", codes.ResourceExhausted, 3, "one"},
		{"Client", 4, "hello", codes.OK, 1, "one"},
		{"Client", 0, "", codes.OK, 1, "one"},
		{"Client", 1, "fail", codes.ResourceExhausted, 0, "two"},
		{"Client", 300, "fail " + big, codes.ResourceExhausted, 0, "two"}, // while the caller has more to send
		{"Bidi", 1, "hello", codes.OK, 1, "one"},
		{"Bidi", 0, "", codes.OK, 0, "one"},
		{"Bidi", 300, big, codes.OK, 300, "one"}, // more than all windows hold, both ways
		{"Bidi", 300, "fail " + big, codes.ResourceExhausted, 0, "one"},
		{"Bidi", 1, "late", codes.ResourceExhausted, 1, "one"},
	} {
		for _, w := range ways() {
			o := s.options(t, w, tc.method, tc.messages, tc.value)
			before := time.Now()
			a := client(t, o).Call(t.Context(), traffic.Call{Deadline: before.Add(time.Minute)})
			what := w.String() + ", " + tc.method + " " + tc.value[:min(len(tc.value), 9)]
			testkit.Want(t, codes.Code(a.Code) == tc.code && a.Received.Messages == tc.received && a.Worker == tc.worker,
				"%s: %+v", what, a)
			testkit.Want(t, tc.code == codes.OK || a.Message == "no thread is free", "%s: %q", what, a.Message)
			var each int64
			if tc.messages > 0 {
				each = int64(len(o.Messages(0)[0]))
			}
			if tc.code == codes.OK && (a.Sent != traffic.Volume{Messages: int64(tc.messages), Bytes: int64(tc.messages) * each}) {
				t.Errorf("%s: sent %+v", what, a.Sent)
			}
			testkit.Want(t, tc.messages == 0 || a.Received.Bytes == a.Received.Messages*each,
				"%s: received %+v, each %d", what, a.Received, each)
			testkit.Want(t, a.First.After(before) == (o.ServerStreams && tc.received > 0),
				"%s: the first message came at %v", what, a.First)
		}
	}
}

// Over HTTP/1.1 all works but what streams both ways, which is refused.
func TestHTTP1(t *testing.T) {
	s := serve(t, nil)
	for _, protocol := range []string{Connect, GRPCWeb} {
		w := Way{Protocol: protocol, HTTP: one}
		for method, want := range map[string]traffic.Volume{
			"Unary": {Messages: 1, Bytes: 7}, "Server": {Messages: 3, Bytes: 21}, "Client": {Messages: 1, Bytes: 7},
		} {
			c := client(t, s.options(t, w, method, 1, "hello"))
			testkit.Must(t, c.Ready(t.Context()))
			if a := c.Call(t.Context(), traffic.Call{}); a.Code != 0 || a.Received != want || c.Opened() != 1 {
				t.Errorf("%s, %s: %+v over %d connections", protocol, method, a, c.Opened())
			}
		}
		want := "/test.Service/Bidi streams both ways, which needs HTTP/2: leave http 1.1 out"
		_, err := New(s.options(t, w, "Bidi", 1, "hello"))
		testkit.RefusedBy(t, err, want)
	}
}

// A call that is given up, by its deadline or by the caller, has the code of that in each
// way; the deadline is sent.
func TestGivenUp(t *testing.T) {
	s := serve(t, nil)
	for _, w := range ways() {
		for _, method := range methods {
			c := client(t, s.options(t, w, method, 1, "hang"))
			if err := c.Ready(t.Context()); err != nil { // else the end of a dial may be told
				t.Error(err)
			}
			for timeout, text := range map[time.Duration]string{20 * time.Millisecond: "", -time.Second: "deadline"} {
				a := c.Call(t.Context(), traffic.Call{Deadline: time.Now().Add(timeout)})
				testkit.Want(t, codes.Code(a.Code) == codes.DeadlineExceeded && strings.Contains(a.Message, text),
					"%s, %s, %v: %+v", w, method, timeout, a)
			}
			ctx, cancel := context.WithCancel(t.Context())
			before := s.calls.Load()
			go func() {
				testkit.Eventually(t, 30*time.Second, "the call to arrive", func() bool { return s.calls.Load() > before })
				cancel()
			}()
			if a := c.Call(ctx, traffic.Call{Deadline: time.Now().Add(time.Minute)}); codes.Code(a.Code) != codes.Canceled {
				t.Errorf("%s, %s, given up: %+v", w, method, a)
			}
			sent := s.header()
			testkit.Want(t, sent.Get("Grpc-Timeout")+sent.Get("Connect-Timeout-Ms") != "", "%s, %s: no deadline in %v", w, method, sent)
		}
	}
}

// Metadata goes with each call, binary values as gRPC writes them, and no answer is compressed.
func TestMetadata(t *testing.T) {
	s := serve(t, nil)
	for _, w := range ways() {
		for _, method := range methods {
			o := s.options(t, w, method, 1, "hello")
			o.Metadata = metadata.Pairs("a", "b", "a", "c", "d-bin", "\x00\xff")
			a := client(t, o).Call(t.Context(), traffic.Call{})
			testkit.Want(t, a.Code == 0, "%s, %s: %+v", w, method, a)
			h := s.header()
			testkit.Want(t, strings.Join(h.Values("A"), ",") == "b,c" && h.Get("D-Bin") == "AP8", "%s, %s: %v", w, method, h)
			for _, name := range []string{"Accept-Encoding", "Grpc-Accept-Encoding", "Connect-Accept-Encoding"} {
				testkit.Want(t, !strings.Contains(h.Get(name), "gzip"), "%s, %s: %s is %s", w, method, name, h.Get(name))
			}
		}
	}
}

// A load by each strategy: every call is answered with what was sent, and connections are
// counted as the server counts them.
func TestStrategies(t *testing.T) {
	connectGo, oldHTTP := Way{Protocol: Connect}, Way{Protocol: Connect, HTTP: one}
	for _, tc := range []struct {
		strategy Strategy
		way      Way
		conns    int64
	}{
		{Single, connectGo, 1},
		{3, connectGo, 3},
		{PerCall, connectGo, 101}, // one to ask
		{Single, oldHTTP, 1},
		{PerCall, oldHTTP, 101},
		{Single, Way{}, 1},
		{3, Way{}, 3},
		{PerCall, Way{}, 100},
		{RoundRobin, Way{}, 1}, // of an address there is only one
	} {
		t.Run(tc.strategy.String()+" "+tc.way.String(), func(t *testing.T) {
			s := serve(t, nil)
			o := s.options(t, tc.way, "Unary", 1, "hello")
			o.Strategy = tc.strategy
			c := client(t, o)
			if !tc.way.Plain() { // else calls open what they need
				testkit.Must(t, c.Ready(t.Context()))
			}
			plan, err := traffic.Options{Rate: "1000", Duration: 100 * time.Millisecond, Timeout: 20 * time.Second, Grace: 30 * time.Second, Most: tc.strategy.MostUnderWay()}.Plan()
			testkit.Must(t, err)
			r, err := traffic.New(plan, c).Run(t.Context())
			testkit.Must(t, err)
			testkit.Want(t, r.Calls.Answered.Count() == 100 && r.Workers["one"] == 100 && r.Sent.Bytes == 700 && r.Received.Bytes == 700,
				"%d answered, %v, %+v, %v", r.Calls.Answered.Count(), r.Workers, r.Received, r.Failures)
			testkit.Want(t, c.Opened() == tc.conns && s.conns.Load() == tc.conns && r.Opened <= tc.conns,
				"%d connections opened, %d accepted, want %d", c.Opened(), s.conns.Load(), tc.conns)
		})
	}
}

// The answer of a call with a connection of its own ends before the connection does.
func TestClosingIsNotInTheLatency(t *testing.T) {
	o := serve(t, nil).options(t, Way{}, "Unary", 1, "hello")
	o.Strategy = PerCall
	answer := client(t, o).Call(t.Context(), traffic.Call{})
	testkit.Want(t, !answer.Ended.IsZero() && answer.Code == 0, "%+v", answer)
}

// Where the connection has ended, the next call opens another.
func TestReconnects(t *testing.T) {
	var all sync.Map
	s := serve(t, func(web *http.Server) {
		count := web.ConnState
		web.ConnState = func(conn net.Conn, state http.ConnState) {
			count(conn, state)
			all.Store(conn, nil)
		}
	})
	c := client(t, s.options(t, Way{Protocol: Connect}, "Unary", 1, "hello"))
	a := c.Call(t.Context(), traffic.Call{})
	testkit.Need(t, a.Code == 0, "%+v", a)
	all.Range(func(conn, _ any) bool {
		conn.(net.Conn).Close()
		return true
	})
	testkit.Eventually(t, 30*time.Second, "a call to be answered", func() bool { return c.Call(t.Context(), traffic.Call{}).Code == 0 })
	testkit.Want(t, c.Opened() == 2, "%d connections", c.Opened())
}

// A server that ends its connection after each call costs no call: what it has not taken
// goes over another.
func TestGoAway(t *testing.T) {
	s := serve(t, func(web *http.Server) { web.SetKeepAlivesEnabled(false) })
	for _, method := range []string{"Unary", "Server"} {
		c := client(t, s.options(t, Way{Protocol: Connect}, method, 1, "hello"))
		for range 200 {
			a := c.Call(t.Context(), traffic.Call{})
			testkit.Want(t, a.Code == 0, "%s: %+v", method, a)
		}
		testkit.Want(t, c.Opened() >= 2, "%s: %d connections", method, c.Opened())
	}
}

func TestParseWay(t *testing.T) {
	for _, tc := range []struct{ protocol, codec, http, want string }{
		{"", "", "", "gRPC over HTTP/2"},
		{"grpc", "proto", "2", "gRPC over HTTP/2"},
		{"grpc", "json", "", "gRPC with JSON over HTTP/2"},
		{"connect", "", "1.1", "Connect over HTTP/1.1"},
		{"grpc-web", "json", "2", "gRPC-Web with JSON over HTTP/2"},
	} {
		w, err := ParseWay(tc.protocol, tc.codec, tc.http)
		testkit.Want(t, err == nil && w.String() == tc.want && w.Plain() == (tc.want == "gRPC over HTTP/2"), "%+v: %v, %v", tc, w, err)
	}
	for want, words := range map[string][3]string{
		`protocol "soap": want grpc, connect, grpc-web`:                      {"soap", "", ""},
		`codec "xml": want proto, json`:                                      {"", "xml", ""},
		`http "3": want 2, 1.1`:                                              {"connect", "", "3"},
		`http 1.1: gRPC needs HTTP/2; give the protocol connect or grpc-web`: {"", "", "1.1"},
	} {
		_, err := ParseWay(words[0], words[1], words[2])
		testkit.RefusedBy(t, err, want)
	}
}

func TestNewRefuses(t *testing.T) {
	s := &server{addr: "127.0.0.1:1"}
	for want, change := range map[string]func(*Options){
		`target "dns:///a:1": want host:port or unix:///path for calls by Connect`: func(o *Options) { o.Target = "dns:///a:1" },
		`target "a": want host:port or unix:///path for calls by Connect`:          func(o *Options) { o.Target = "a" },
	} {
		o := s.options(t, Way{Protocol: Connect}, "Unary", 1, "hello")
		change(&o)
		_, err := New(o)
		testkit.RefusedBy(t, err, want)
	}
}
