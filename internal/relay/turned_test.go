package relay

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/health"
	"github.com/cabrank/cabrank/internal/testkit"
)

// R4: an endpoint that answers nobody and turns calls away for a second is given one
// more and more rarely. An answer on any shard ends that, as does a new process.
func TestTurningAwayIsSuspect(t *testing.T) {
	g := newRig(t, func(o *Options) { o.Shards = 2 })
	e := g.AddEndpoint("w1", 1, true)
	g.Up(e, "none", "")
	const s, ms = time.Second, time.Millisecond
	turn := func(shard int, at ...time.Duration) {
		st := g.shards[shard]
		for _, now := range at {
			st.do(func() { st.upstreams[0].turnsAway(now) })
		}
	}
	want := func(what string, failures int, suspect bool) {
		t.Helper()
		if b := g.shards[0].upstreams[0].dials; b.failures != failures || g.Activity(e).TurnsAway != suspect {
			t.Errorf("%s: %d failures, suspect %v; want %d, %v", what, b.failures, !suspect, failures, suspect)
		}
	}
	turn(0, s, s+ms, s+2*ms, s+900*ms)
	want("often, but not for long", 0, false)
	turn(0, 2*s)
	want("for a second", 1, true)
	turn(0, 3*s, 4*s)
	want("for three", 3, true)
	g.shards[1].do(func() { g.shards[1].upstreams[0].touch(5 * s) })
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
		all += movePause(n)
	}
	testkit.Want(t, (all*8/10) >= health.TurnedFor && all <= 3*time.Second, "all waits together are %v", all)
}
