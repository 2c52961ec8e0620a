package relay

import (
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/health"
	"github.com/cabrank/cabrank/internal/testkit"
)

// R4: a call that workers turn away by GOAWAY moves at most eight times. It teaches
// nothing of their threads: no slot pauses or is taken away for it, and the calls of
// others are answered meanwhile.
func TestTurnedAwayNineTimes(t *testing.T) {
	g := newRig(t)
	_, bad := g.worker("w1", 4)
	caller, other := g.caller(), g.caller()
	caller.WriteHeaders(1, end, request(hello)...)
	for try := range 9 {
		w := bad()
		w.WantHeaders(1, end)
		if try == 4 { // the worker answers somebody else on the same connection
			other.WriteHeaders(1, end, request("/test.Greeter/Other")...)
			w.WantHeaders(3, end)
			reply(w, 3)
			wantReply(other, 1)
		}
		w.Skip(testkit.RST)
		w.WriteGoAway(0, http2.ErrCodeNo, "")
		w.WantClosed()
	}
	wantStatus(caller, 1, "14", "cabrank: bad response from worker")
	if n := g.counted("moved"); n != 8 {
		t.Errorf("moved %d times, want 8", n)
	}
	if n := g.rank.Decisions()["paused_refusing"]; n != 0 {
		t.Errorf("taken for refusals %d times", n)
	}
}

// R4: a reflection call, which has no slot, is turned away no more often.
func TestReflectionTurnedAwayNineTimes(t *testing.T) {
	g := newRig(t)
	_, bad := g.worker("w1", 4)
	caller := g.caller()
	caller.WriteHeaders(1, noEnd, request("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")...)
	for range 9 {
		w := bad()
		w.WantHeaders(1, noEnd)
		w.Skip(testkit.RST)
		w.WriteGoAway(0, http2.ErrCodeNo, "")
		w.WantClosed()
	}
	caller.WantFields(1, end, ":status", "200", "content-type", "application/grpc", "grpc-status", "14",
		"grpc-message", "cabrank: bad response from worker")
}

// R4: an endpoint that answers nobody and turns calls away for a second is given one
// more and more rarely. An answer on any shard ends that, as does a new process.
func TestTurningAwayIsSuspect(t *testing.T) {
	g := newRig(t, func(o *Options) { o.Shards = 2 })
	e := g.AddEndpoint("w1", 1, true)
	g.Up(e, "none", "")
	const s, ms = time.Second, time.Millisecond
	turn := func(shard int, at ...time.Duration) {
		st := g.stands[shard]
		for _, now := range at {
			st.do(func() { st.upstreams[0].turnsAway(now) })
		}
	}
	want := func(what string, failures int, suspect bool) {
		t.Helper()
		if b := g.dials(); b.failures != failures || g.Activity(e).TurnsAway != suspect {
			t.Errorf("%s: %d failures, suspect %v; want %d, %v", what, b.failures, !suspect, failures, suspect)
		}
	}
	turn(0, s, s+ms, s+2*ms, s+900*ms)
	want("often, but not for long", 0, false)
	turn(0, 2*s)
	want("for a second", 1, true)
	turn(0, 3*s, 4*s)
	want("for three", 3, true)
	g.stands[1].do(func() { g.stands[1].upstreams[0].touch(5 * s) })
	want("another shard has had an answer", 3, false)
	turn(0, 6*s, 6*s+ms, 6*s+2*ms, 6*s+999*ms)
	want("that was an end", 3, false)
	turn(0, 8*s)
	want("again", 4, true)
	g.Up(e, "none", "")
	turn(0, 9*s)
	want("another process", 0, false)
	turn(0, 20*s)
	want("rarely", 0, false)
}

// R4: a call that nobody looks at moves at once, then after longer and longer waits,
// which take more time than it takes to know a bad endpoint.
func TestTurnedAwayCallsRest(t *testing.T) {
	var all time.Duration
	for n := quickMoves + 1; n <= maxRefusals; n++ {
		all += restAfter(n)
	}
	if least := all * 8 / 10; least < health.TurnedFor || all > 3*time.Second {
		t.Errorf("all waits together are %v", all)
	}
}
