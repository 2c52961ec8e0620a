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

// exchange plays a call and compares the lists that both sides read. Only grpc-timeout is
// smaller, and x-forwarded-for and x-cabrank-hops come at the end.
func exchange(t *testing.T, caller *testkit.Peer, accept func() *testkit.Peer, k kindOfCall, e closing) {
	t.Helper()
	head := []testkit.Field{
		{Name: ":status", Value: "200"}, {Name: "content-type", Value: "application/grpc+json"},
		{Name: "grpc-encoding", Value: "x-unknown"}, {Name: "x-first", Value: "1"},
		{Name: "set-cookie", Value: "c=3"}, {Name: "set-cookie", Value: "d=4", Never: true},
	}
	same := func(got, want []testkit.Field) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("got\n%v\nwant\n%v", got, want)
		}
	}
	caller.WriteFields(1, noEnd, fullRequest())
	worker := accept()
	same(undo(t, worker.WantHeaders(1, noEnd)), fullRequest())
	sent := 0
	ask := func() {
		sent++
		caller.WriteData(1, testkit.EndStream(sent == k.requests), hi())
		worker.WantDataBytes(1, hi(), testkit.EndStream(sent == k.requests))
	}
	for sent < k.requests && (!k.turns || e.atOnce) {
		ask()
	}
	if !e.atOnce {
		worker.WriteFields(1, noEnd, head)
		same(caller.WantHeaders(1, noEnd), head)
		for range k.answer {
			if k.turns {
				ask()
			}
			worker.WriteData(1, noEnd, hi())
			caller.WantDataBytes(1, hi(), noEnd)
		}
	}
	worker.WriteFields(1, end, e.trailer)
	same(caller.WantHeaders(1, end), e.trailer)
}

// Header and trailer lists arrive with the same names, values and order as they were sent, for
// every kind of call and every way to end.
func TestListsArriveUnchanged(t *testing.T) {
	for _, k := range everyKind() {
		for _, e := range everyEnding() {
			t.Run(k.name+", "+e.name, func(t *testing.T) {
				g := newRig(t)
				_, accept := g.worker("w1", 1)
				exchange(t, g.caller(), accept, k, e)
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
