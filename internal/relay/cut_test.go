package relay

import (
	"testing"
	"testing/synctest"

	"github.com/cabrank/cabrank/internal/h2"
)

const draining = "cabrank: worker draining"

// R4: a grant that is on its way when its endpoint is cut off moves.
func TestCutMeetsAGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		e, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.AnyOrder()
		caller.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(1, end)
		caller.WriteHeaders(3, end, request(hello)...)
		g.wantWaiting(1)
		synctest.Wait()
		st := g.stands[0]
		st.Lock() // the grant is posted, and nobody takes it
		first := st.someCall()
		first.fail(endedDeadline, st.Now())
		now := st.Now()
		g.rank.SetReady(e.slots, false, now, nil)
		st.upstreamOf(e.slots).cut(now)
		st.Unlock()
		wantStatus(caller, 1, "4", "cabrank: deadline exceeded")
		_, other := g.pipeWorker("w2", 1)
		other.WantHeaders(1, end)
		reply(other, 1)
		wantReply(caller, 3)
	})
}

// someCall returns a call that has a stream to a worker.
func (st *stand) someCall() (c *call) {
	for _, u := range st.upstreams {
		for _, uc := range u.conns {
			uc.link.Conn.Each(func(s *h2.Stream) { c = s.Owner.(*attempt).call })
		}
	}
	return c
}
