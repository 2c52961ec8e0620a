package trace

import (
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/collector"
)

// exported returns the spans that a collector gets of calls.
func exported(t *testing.T, o Options, spans int, calls func(tr *Tracer)) []collector.Span {
	t.Helper()
	c := collector.Start(t)
	u, err := Read(c.URL, func(string) string { return "" })
	testkit.Must(t, err)
	o.URL = u.URL
	tr := New(o)
	calls(tr)
	tr.Close(10 * time.Second)
	got := c.Spans()
	testkit.Need(t, len(got) == spans, "%d spans came, want %d", len(got), spans)
	return got
}

// What a collector gets of a call that waits, is refused by one worker, fails at another and
// has its answer from a hedge.
func TestSpans(t *testing.T) {
	const ms = time.Millisecond
	before := time.Now()
	o := options(t, "http://collector.test", io.Discard)
	o.Version = "9.9"
	from, _ := Parse([]byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03"))
	var asked []string
	got := exported(t, o, 7, func(tr *Tracer) {
		c := tr.Begin(from, true, "10.0.0.7", 0)
		c.KeepState([]byte("vendor=1"))
		attempt := func(kind, worker, address string, now time.Duration) int {
			n := c.Begin(kind, worker, address, now)
			asked = append(asked, string(c.Parent(nil, n)))
			return n
		}
		c.Finish(c.Begin(Queue, "", "", 1*ms), 0, "", 5*ms)
		c.Finish(attempt(First, "worker-1", "127.0.0.1:9000", 5*ms), grpcwire.Unavailable, "refused", 6*ms)
		c.Finish(attempt(Moved, "worker-2", "/run/cabrank/2.sock", 6*ms), grpcwire.Aborted, "", 16*ms)
		c.Finish(c.Begin(Queue, "", "", 17*ms), 0, "", 18*ms)
		lost := attempt(Retry, "worker-1", "[::1]:9000", 18*ms)
		won := attempt(Hedge, "10.0.0.9:50051", "10.0.0.9:50051", 28*ms)
		c.Finish(won, grpcwire.OK, "", 38*ms)
		c.Finish(won, grpcwire.Internal, "too late", 39*ms)
		_ = lost // it goes on until the call ends
		c.Path, c.Known, c.Door = append(c.Path[:0], "/shop.Orders/Get"...), true, "grpc"
		tr.End(c, 40*ms)
	})
	rpc := func(code, failed string, more map[string]any) map[string]any {
		all := map[string]any{"rpc.system.name": "grpc", "rpc.method": "shop.Orders/Get", "rpc.status_code": code}
		if failed != "" {
			all["error.type"] = failed
		}
		maps.Copy(all, more)
		return all
	}
	call := got[0]
	for i, want := range []struct {
		name, kind string
		start, end time.Duration
		failed     bool
		attributes map[string]any
	}{
		{"shop.Orders/Get", "Server", 0, 40 * ms, false, rpc("OK", "", map[string]any{"client.address": "10.0.0.7", "cabrank.door": "grpc"})},
		{"queue", "Internal", 1 * ms, 5 * ms, false, map[string]any{}},
		{"shop.Orders/Get", "Client", 5 * ms, 6 * ms, true, rpc("UNAVAILABLE", "UNAVAILABLE", map[string]any{"cabrank.attempt": "first", "cabrank.worker": "worker-1", "cabrank.ended": "refused", "server.address": "127.0.0.1", "server.port": int64(9000)})},
		{"shop.Orders/Get", "Client", 6 * ms, 16 * ms, true, rpc("ABORTED", "ABORTED", map[string]any{"cabrank.attempt": "moved", "cabrank.worker": "worker-2", "server.address": "/run/cabrank/2.sock"})},
		{"queue", "Internal", 17 * ms, 18 * ms, false, map[string]any{}},
		{"shop.Orders/Get", "Client", 18 * ms, 40 * ms, false, rpc("OK", "", map[string]any{"cabrank.attempt": "retry", "cabrank.worker": "worker-1", "server.address": "::1", "server.port": int64(9000)})},
		{"shop.Orders/Get", "Client", 28 * ms, 38 * ms, false, rpc("OK", "", map[string]any{"cabrank.attempt": "hedge", "cabrank.worker": "10.0.0.9:50051", "server.address": "10.0.0.9", "server.port": int64(50051)})},
	} {
		s, parent := got[i], call.ID
		if i == 0 {
			parent = "b7ad6b7169203331"
		}
		if s.Trace != "0af7651916cd43dd8448eb211c80319c" || s.Parent != parent || s.Flags != 3 || s.State != "vendor=1" || len(s.ID) != 16 {
			t.Errorf("span %d is %+v", i, s)
		}
		testkit.Want(t, s.Name == want.name && s.Kind == want.kind && s.Failed == want.failed && maps.Equal(s.Attributes, want.attributes),
			"span %d is\n%+v\nwant\n%+v", i, s, want)
		if start, end := s.Start.Sub(call.Start), s.End.Sub(call.Start); start != want.start || end != want.end {
			t.Errorf("span %d is from %v to %v, want %v to %v", i, start, end, want.start, want.end)
		}
	}
	away := call.Start.Sub(before)
	testkit.Want(t, away >= -time.Second && away <= time.Second, "the call begins %v away from when it did", away)
	for i, at := range []int{2, 3, 5, 6} {
		if want := "00-" + call.Trace + "-" + got[at].ID + "-03"; asked[i] != want {
			t.Errorf("worker %d gets %s, want %s", i, asked[i], want)
		}
	}
	testkit.Want(t, maps.Equal(call.Resource, map[string]any{"service.name": "cabrank"}), "the resource is %v", call.Resource)
}

// Whose fault an error is decides whether the call's span is one of an error.
func TestStatus(t *testing.T) {
	server := map[grpcwire.Code]bool{
		grpcwire.Unknown: true, grpcwire.DeadlineExceeded: true, grpcwire.Unimplemented: true,
		grpcwire.Internal: true, grpcwire.Unavailable: true, grpcwire.DataLoss: true,
	}
	got := exported(t, options(t, "http://collector.test", io.Discard), 2*grpcwire.NumCodes, func(tr *Tracer) {
		for code := range grpcwire.Code(grpcwire.NumCodes) {
			c := tr.Begin(comes(1), true, "", 0)
			c.Finish(c.Begin(First, "worker-1", "127.0.0.1:1", 0), code, "", 0)
			c.Code, c.Known = code, true
			tr.End(c, 0)
		}
	})
	for i, s := range got {
		code := grpcwire.Code(i / 2)
		failed := i%2 == 0 && server[code] || i%2 == 1 && code != grpcwire.OK
		_, typed := s.Attributes["error.type"]
		testkit.Want(t, s.Failed == failed && typed == failed && s.Attributes["rpc.status_code"] == code.String(),
			"%s %v: failed %v, %v", s.Kind, code, s.Failed, s.Attributes)
	}
}

// A span without a parent has an empty field (OTLP, Span.parent_span_id), not an id of zeros.
func TestRootHasNoParent(t *testing.T) {
	o := options(t, "http://collector.test", io.Discard)
	o.Share, o.Plain = 1, true
	tr := New(o)
	tr.Close(time.Second)
	c := tr.Begin(Context{}, false, "", 0)
	tr.End(c, 0)
	body, err := tr.sender.encoder.encode([]*Call{c}, time.Now())
	testkit.Must(t, err)
	var data otlp.TracesData
	testkit.Must(t, proto.Unmarshal(body, &data))
	s := data.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()[0]
	testkit.Want(t, len(s.GetParentSpanId()) == 0 && len(s.GetTraceId()) == 16 && len(s.GetSpanId()) == 8, "the span is %v", s)
}

// Callers choose paths, states and numbers of attempts; a collector gets something bounded
// that it can read.
func TestOddCalls(t *testing.T) {
	o := options(t, "http://collector.test", io.Discard)
	o.Share, o.Resource = 1, map[string]string{"of.latin": "\xe9"}
	got := exported(t, o, 1+1+33+33, func(tr *Tracer) {
		c := tr.Begin(Context{}, false, "", 0)
		c.KeepState([]byte(strings.Repeat("a=b,", 16<<10)))
		c.Path = append(c.Path[:0], "/no\xffsuch/Method\x00"...)
		c.Code, c.Reason = grpcwire.Unavailable, "no_worker"
		tr.End(c, 0)
		c = tr.Begin(comes(1), true, "", 0)
		c.KeepState([]byte(strings.Repeat("\xff", 511) + "a"))
		c.KeepState([]byte(strings.Repeat("b", 513)))
		c.Path, c.Known = append(c.Path[:0], "/shop.\xff/Get"...), true
		tr.End(c, 0)
		for waits := range 2 {
			c = tr.Begin(comes(1), true, "", 0)
			for i := range 40 {
				if waits == 1 {
					c.Finish(c.Begin(Queue, "", "", 0), 0, "", 0)
				}
				n := c.Begin(Retry, "worker-1", "", 0)
				if parent := string(c.Parent(nil, n)); (n < 0) != (i >= 16) || strings.Contains(parent, "-0000000000000000-") {
					t.Errorf("attempt %d is part %d and has %s", i, n, parent)
				}
				c.Finish(n, grpcwire.Aborted, "", 0)
			}
			for range 20 {
				c.Begin(Queue, "", "", 0)
			}
			tr.End(c, 0)
		}
	})
	odd := got[0]
	if odd.Name != "grpc" || odd.Attributes["rpc.method"] != "_OTHER" || odd.Attributes["rpc.method_original"] != "no\uFFFDsuch/Method\x00" ||
		odd.Attributes["cabrank.reason"] != "no_worker" || odd.Parent != "" || odd.State != "" || odd.Flags != 1 {
		t.Errorf("the odd call is %+v", odd)
	}
	testkit.Want(t, got[1].State == "a" && got[1].Name == "shop.\uFFFD/Get" && got[1].Resource["of.latin"] == "\uFFFD",
		"the other odd call is %+v", got[1])
	attempts := 0
	for _, s := range got[2:] {
		if s.Attributes["cabrank.attempt"] == "retry" {
			attempts++
		}
		testkit.Want(t, s.Kind != "Server" || s.Attributes["cabrank.attempts"] == "40", "a call of 40 attempts has %v", s.Attributes)
	}
	testkit.Want(t, attempts == 32, "%d attempts of two calls are kept, want 16 of each", attempts)
}
