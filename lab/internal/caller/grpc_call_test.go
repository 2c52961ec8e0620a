package caller

import (
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

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
			testkit.Must(t, err)
			r, err := traffic.New(plan, c).Run(t.Context())
			testkit.Must(t, err)
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
