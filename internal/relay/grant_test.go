package relay

import (
	"testing"
	"testing/synctest"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/testkit"
)

// A grant that is on its way from another shard while its call is given up is
// handed back: the slot serves whoever is next (R21, R23).
func TestGrantMeetsCancel(t *testing.T) {
	for name, giveUp := range map[string]func(*call){
		"cancelled": func(c *call) { c.abandoned(c.st.Now()) },
		"deadline":  func(c *call) { c.fail(endedDeadlineQueued, c.st.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, func(o *Options) { o.Shards = 2 })
			_, accept := g.worker("w1", 1)
			first, second := g.caller(), g.caller() // one on each shard
			first.WriteHeaders(1, end, request(hello)...)
			worker := accept()
			worker.WantHeaders(1, end)
			second.WriteHeaders(1, noEnd, request(hello)...)
			second.WriteData(1, end, hi())
			var waits *shardState
			testkit.Eventually(t, soon, "the call in the queue", func() bool {
				g.each(func(st *shardState) {
					if st.someWaiting() != nil {
						waits = st
					}
				})
				return waits != nil
			})
			second.Skip(testkit.Headers, testkit.RST)
			waits.do(func() {
				c := waits.someWaiting()
				reply(worker, 1)
				wantReply(first, 1)
				g.wantWaiting(0) // granted, and nobody can be told as long as we hold the lock
				giveUp(c)
				testkit.Want(t, c.awaited && !c.main.lease.Valid(), "the call must wait for its grant before it is used again")
			})
			first.WriteHeaders(3, end, request(hello)...)
			worker.WantHeaders(3, end)
			reply(worker, 3)
			wantReply(first, 3)
			g.wantInFlight(0)
		})
	}
}

// R4: a grant that is on its way when its endpoint is cut off moves. When that goes down the
// call is served there, and counts among those that are waited for.
func TestGrantMeetsCut(t *testing.T) {
	for name, cut := range map[string]bool{"cut": true, "down": false} {
		t.Run(name, func(t *testing.T) {
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
				st, stream := g.shards[0], uint32(3)
				st.do(func() { // the grant is posted, and nobody takes it
					now := st.Now()
					st.someCall().fail(endedDeadline, now)
					g.rank.SetReady(e.slots, false, now, nil)
					if cut {
						st.upstreamOf(e.slots).cut(now)
					}
				})
				wantStatus(caller, 1, "4", "cabrank: deadline exceeded")
				if cut {
					_, worker = g.pipeWorker("w2", 1)
					stream = 1
				}
				worker.Skip(testkit.RST) // of the first
				worker.WantHeaders(stream, end)
				n := g.Activity(e).InFlight
				testkit.Want(t, (n == 1) != cut, "%d calls in flight", n)
				reply(worker, stream)
				wantReply(caller, 3)
				g.wantInFlight(0)
			})
		})
	}
}

// someCall returns a call that has a stream to a worker.
func (st *shardState) someCall() (c *call) {
	for _, u := range st.upstreams {
		for _, uc := range u.conns {
			uc.link.Conn.Each(func(s *h2.Stream) { c = s.Owner.(*attempt).call })
		}
	}
	return c
}
