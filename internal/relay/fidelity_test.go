package relay

import (
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// kindOfCall is how many messages go each way; a bidirectional call takes turns.
type kindOfCall struct {
	name             string
	requests, answer int
	turns            bool
}

// closing is how the worker ends a call.
type closing struct {
	name    string
	atOnce  bool // trailers-only, before any message
	trailer []testkit.Field
}

func everyKind() []kindOfCall {
	return []kindOfCall{
		{"unary", 1, 1, false},
		{"client stream", 3, 1, false},
		{"server stream", 1, 3, false},
		{"bidi", 3, 3, true},
	}
}

func everyEnding() []closing {
	details := []testkit.Field{
		{Name: "grpc-status", Value: "5"},
		{Name: "grpc-message", Value: "not%20here%0A"},
		{Name: "grpc-status-details-bin", Value: "CAUSBG5vdA=="},
		{Name: "x-cost", Value: "1"}, {Name: "x-cost", Value: "2"},
		{Name: "x-token", Value: "t", Never: true},
	}
	return []closing{
		{"success", false, testkit.Fields("grpc-status", "0", "x-last", "", "grpc-message", "")},
		{"error", false, details},
		{"trailers-only", true, append(testkit.Fields(":status", "200", "content-type", "application/grpc+proto", "x-head", "1"), details...)},
	}
}

// fullRequest has everything that a relay could be tempted to touch.
func fullRequest() []testkit.Field {
	return append([]testkit.Field{
		{Name: ":authority", Value: "greeter.test:443"}, {Name: ":path", Value: "/test.Greeter/Hello"},
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "https"},
	}, []testkit.Field{
		{Name: "content-type", Value: "application/grpc+json"},
		{Name: "user-agent", Value: "grpc-ruby/1.51 grpc-c/29.0.0 (linux; chttp2)"},
		{Name: "te", Value: "trailers"},
		{Name: "grpc-timeout", Value: "5S"},
		{Name: "grpc-encoding", Value: "x-unknown"},
		{Name: "grpc-accept-encoding", Value: "identity,x-unknown"},
		{Name: "cookie", Value: "a=1"}, {Name: "cookie", Value: "b=2"},
		{Name: "authorization", Value: "Bearer secret", Never: true},
		{Name: "x-twice", Value: "1"}, {Name: "x-other", Value: ""}, {Name: "x-twice", Value: "2"},
		{Name: "trace-bin", Value: "AAECAw"}, {Name: "via", Value: "1.1 outside"},
	}...)
}

// exchange plays a call and returns the lists that both sides read, in order.
// The worker may come when it has been called.
func exchange(caller *testkit.Peer, accept func() *testkit.Peer, k kindOfCall, e closing) (lists [][]testkit.Field) {
	head := []testkit.Field{
		{Name: ":status", Value: "200"}, {Name: "content-type", Value: "application/grpc+json"},
		{Name: "grpc-encoding", Value: "x-unknown"}, {Name: "x-first", Value: "1"},
		{Name: "set-cookie", Value: "c=3"}, {Name: "set-cookie", Value: "d=4", Never: true},
	}
	caller.WriteFields(1, noEnd, fullRequest())
	worker := accept()
	lists = append(lists, worker.WantHeaders(1, noEnd))
	if e.atOnce {
		caller.WriteData(1, end, hi())
		worker.WantDataBytes(1, hi(), end)
		worker.WriteFields(1, end, e.trailer)
		return append(lists, caller.WantHeaders(1, end))
	}
	sent := 0
	ask := func() {
		sent++
		caller.WriteData(1, testkit.EndStream(sent == k.requests), hi())
		worker.WantDataBytes(1, hi(), testkit.EndStream(sent == k.requests))
	}
	for sent < k.requests && !k.turns {
		ask()
	}
	worker.WriteFields(1, noEnd, head)
	if !k.turns { // held HEADERS are released by the DATA behind them
		worker.WriteData(1, noEnd, hi())
	}
	lists = append(lists, caller.WantHeaders(1, noEnd))
	for i := range k.answer {
		if k.turns {
			ask()
		}
		if k.turns || i > 0 {
			worker.WriteData(1, noEnd, hi())
		}
		caller.WantDataBytes(1, hi(), noEnd)
	}
	worker.WriteFields(1, end, e.trailer)
	return append(lists, caller.WantHeaders(1, end))
}

// direct joins a caller and a worker without a relay between.
func direct(t *testing.T) (caller, worker *testkit.Peer) {
	t.Helper()
	dialed, accepted := testkit.TCPPair(t)
	caller, worker = testkit.NewCaller(t, dialed), testkit.NewWorker(t, accepted)
	greeted := make(chan struct{})
	go func() { defer close(greeted); worker.Greet() }() // ends with the greeting
	caller.Greet()
	<-greeted
	return caller, worker
}

// Header and trailer lists arrive with the same names, values and order as
// without a relay, for every kind of call and every way to end. Only
// grpc-timeout is smaller, and x-forwarded-for and x-cabrank-hops come at the
// end.
func TestListsArriveUnchanged(t *testing.T) {
	for _, k := range everyKind() {
		for _, e := range everyEnding() {
			t.Run(k.name+", "+e.name, func(t *testing.T) {
				caller, worker := direct(t)
				want := exchange(caller, func() *testkit.Peer { return worker }, k, e)
				g := newRig(t)
				_, accept := g.worker("w1", 1)
				got := exchange(g.caller(), accept, k, e)
				got[0] = undo(t, got[0])
				for i := range want {
					if !slices.Equal(got[i], want[i]) {
						t.Errorf("list %d:\n%v\nwant\n%v", i, got[i], want[i])
					}
				}
			})
		}
	}
}

// undo takes back the three changes that a relay makes to a request.
func undo(t *testing.T, list []testkit.Field) []testkit.Field {
	t.Helper()
	for i := range list {
		if list[i].Name == "grpc-timeout" {
			if v := list[i].Value; len(v) > 9 || len(v) == 8 && v > "5000000u" || !strings.HasSuffix(v, "u") {
				t.Errorf("grpc-timeout: got %s, want 5000000u or a little less", v)
			}
			list[i].Value = "5S"
		}
	}
	last := len(list) - 2
	if want := testkit.Fields("x-forwarded-for", "127.0.0.1", "x-cabrank-hops", "1"); !slices.Equal(list[last:], want) {
		t.Errorf("last fields: got %v, want %v", list[last:], want)
	}
	return list[:last]
}

// An address is appended to the x-forwarded-for that is there, in its place;
// of several lines to the last, since together they are one list.
func TestForwardedFor(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 1)
	caller := g.caller()
	caller.WriteHeaders(1, end, request(hello, "x-forwarded-for", "192.0.2.1", "x-forwarded-for", "192.0.2.2, 192.0.2.3", "x-after", "1")...)
	worker := accept()
	worker.WantFields(1, end, passedOn(request(hello, "x-forwarded-for", "192.0.2.1", "x-forwarded-for", "192.0.2.2, 192.0.2.3, 127.0.0.1", "x-after", "1"))...)
	reply(worker, 1)
	wantReply(caller, 1)

	caller.WriteHeaders(101, end, request(hello, "x-forwarded-for", "")...)
	worker.WantFields(3, end, passedOn(request(hello, "x-forwarded-for", "127.0.0.1"))...)
	reply(worker, 3)
	wantReply(caller, 101)

	// The order of the fields that cabrank writes anew makes no difference.
	for i, list := range [][]string{
		{"x-forwarded-for", "192.0.2.1", "x-mid", "1", "grpc-timeout", "99999999H", "x-cabrank-hops", "2"},
		{"grpc-timeout", "99999999H", "x-cabrank-hops", "2", "x-mid", "1", "x-forwarded-for", "192.0.2.1"},
		{"x-cabrank-hops", "2", "x-forwarded-for", "192.0.2.1", "grpc-timeout", "99999999H", "x-mid", "1"},
	} {
		stream := uint32(5 + 2*i)
		caller.WriteHeaders(100+stream, end, request(hello, list...)...)
		got := worker.WantHeaders(stream, end)[6:]
		var names []string
		for _, f := range got {
			names = append(names, f.Name)
		}
		want := []string{list[0], list[2], list[4], list[6]}
		if !slices.Equal(names, want) || testkit.Value(got, "x-forwarded-for") != "192.0.2.1, 127.0.0.1" || testkit.Value(got, "x-mid") != "1" ||
			testkit.Value(got, "x-cabrank-hops") != "3" {
			t.Errorf("got %v, want %v", got, want)
		}
		if v := testkit.Value(got, "grpc-timeout"); len(v) > 9 || v < "70000000M" {
			t.Errorf("a timeout of centuries: got %q", v)
		}
		reply(worker, stream)
		wantReply(caller, 100+stream)
	}
}
