package relay

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/testkit"
)

// Hedges cost no memory in the steady state either.
func TestHedgesAreReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, withRule(stats.MethodRule{Idempotent: true, HedgeAfter: 100 * time.Millisecond}))
		_, w1 := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, end, request(hello)...)
		w1.WantHeaders(1, end)
		_, w2 := g.pipeWorker("w2", 1)
		w2.WantHeaders(1, end)
		reply(w2, 1)
		wantReply(caller, 1)
		w1.WantRST(1, http2.ErrCodeCancel)
		synctest.Wait()
		g.shards[0].do(func() {
			st := g.shards[0]
			testkit.Need(t, len(st.freeAttempts) == 1, "%d attempts for reuse", len(st.freeAttempts))
			a := st.freeAttempts[0]
			testkit.Want(t, !a.up.Open() && !a.hold.Set() && !a.lease.Valid() && a.held == nil && a.via == nil && a.previous == 0,
				"an attempt for reuse has a past: %+v", a.attemptFields)
			testkit.Equal(t, st.newAttempt(&call{st: st}), a, "it is not used again")
			st.recycleAttempt(a)
		})
	})
}
