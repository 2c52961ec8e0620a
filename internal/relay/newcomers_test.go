package relay

import (
	"testing"
	"testing/synctest"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R8: subscribers who come at once to a worker that nobody has called yet leave a
// slot to other calls, and are counted for what they are.
func TestStreamsAtOnceLeaveASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const watch = "/chat.Chat/Watch"
		g := newPipeRig(t, func(o *Options) { o.Rank.StreamSlots = 0 })
		_, worker := g.pipeWorker("w1", 4)
		callers := make([]*testkit.Peer, 8)
		for i := range callers {
			callers[i] = g.pipeCaller()
			callers[i].Skip(testkit.Headers, testkit.Data)
			callers[i].WriteHeaders(1, end, request(watch)...)
		}
		for s := uint32(1); s < 7; s += 2 {
			worker.WantHeaders(s, end)
			worker.WriteHeaders(s, noEnd, responseHead()...)
			worker.WriteData(s, noEnd, hi())
		}
		g.wantWaiting(5)
		if n := g.Rank().LongCalls; n != 3 { // nobody knows yet
			t.Errorf("%d long calls after one message each, not 3", n)
		}
		for s := uint32(1); s < 7; s += 2 {
			worker.WriteData(s, noEnd, hi())
		}
		synctest.Wait()
		if n := g.Rank().LongCalls; n != 3 {
			t.Errorf("%d long calls, not 3", n)
		}
		other := g.pipeCaller()
		for s := uint32(1); s < 9; s += 2 {
			other.WriteHeaders(s, end, request(hello)...)
			worker.WantHeaders(s+6, end)
			reply(worker, s+6)
			wantReply(other, s)
		}
	})
}
