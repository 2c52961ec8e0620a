package relay

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R14: 800 resets at once, 25 a second, never more than that.
func TestResetBudget(t *testing.T) {
	var b resetBudget
	for _, step := range []struct {
		at      time.Duration
		written uint64
		left    int
	}{
		{0, 0, 800},
		{time.Hour, 0, 800}, // unused resets are not saved up
		{time.Hour, 1, 799},
		{time.Hour + resetPause - 1, 1, 799},
		{time.Hour + resetPause, 1, 800},
		{2 * time.Hour, 801, 0},
		{2*time.Hour + time.Second, 801, 25},
		{2*time.Hour + time.Second, 830, -4}, // streams that were open already
		{2*time.Hour + 2*time.Second, 830, 21},
		{2*time.Hour + 33200*time.Millisecond, 830, 800},
	} {
		if left := b.left(step.written, step.at); left != step.left {
			t.Errorf("at %v after %d resets: %d left, want %d", step.at, step.written, left, step.left)
		}
	}
}

// resting counts the upstream connections that get no new calls for their
// resets, those that have ended for that reason included.
func (g *rig) resting() (n int) {
	g.each(func(st *shardState) {
		for _, u := range st.upstreams {
			for _, uc := range u.conns {
				if uc.resting {
					n++
				}
			}
		}
	})
	return n
}

// R14: under cancels without end, with a long call on every connection, so
// many connections rest and no more: then the one that has won most back is
// used again.
func TestRestingConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		e := g.AddEndpoint("w1", 1000, true)
		g.Up(e, "none", "") // dials fail at once
		st := g.shards[0]
		u := st.upstreamOf(e.slots)
		var workers []*testkit.Peer
		for range maxResting {
			p := testkit.NewWorker(t, g.attach(e))
			p.Greet()
			p.Skip(testkit.WindowUpdate)
			workers = append(workers, p)
		}
		caller := g.pipeCaller()
		stream := uint32(1)
		for i := maxResting - 1; i >= 0; i-- {
			st.do(func() { u.conns[i].resets.paid = st.Now() + (maxResets-2)*resetPause }) // two are left
			caller.WriteHeaders(stream, noEnd, request(hello)...)                          // a long call
			workers[i].WantHeaders(1, noEnd)
			caller.WriteHeaders(stream+2, noEnd, request(hello)...)
			workers[i].WantHeaders(3, noEnd)
			caller.WriteRST(stream+2, http2.ErrCodeCancel)
			workers[i].WantRST(3, http2.ErrCodeCancel)
			stream += 4
		}
		const best = 7 // all are worn out, but this one
		st.do(func() { u.conns[best].resets.paid -= time.Second })
		caller.WriteHeaders(stream, end, request(hello)...)
		workers[best].WantHeaders(5, end)
		reply(workers[best], 5)
		wantReply(caller, stream)
		testkit.Equal(t, g.resting(), maxResting-1, "connections rest")
		st.do(func() {
			testkit.Want(t, len(u.conns) == maxResting, "%d connections, want %d", len(u.conns), maxResting)
		})
	})
}
