package relay

import (
	"testing"

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
			var waits *stand
			testkit.Eventually(t, soon, "the call in the queue", func() bool {
				g.each(func(st *stand) {
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
				if !c.awaited || c.lease.Valid() {
					t.Error("the call must wait for its grant before it is used again")
				}
			})
			first.WriteHeaders(3, end, request(hello)...)
			worker.WantHeaders(3, end)
			reply(worker, 3)
			wantReply(first, 3)
			g.wantInFlight(0)
		})
	}
}
