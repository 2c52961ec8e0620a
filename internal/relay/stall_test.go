package relay

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/testkit"
)

const stallTimeout = time.Minute

// stallRig has one slot, and as much time for those who wait as it takes.
func stallRig(t *testing.T) *rig {
	t.Helper()
	return newPipeRig(t, func(o *Options) {
		o.StallTimeout, o.QueueTimeout, o.AbsorbBytes = stallTimeout, 24*time.Hour, 0
	})
}

// R9: while nobody waits a call may be as quiet as it likes, and the first who
// has to wait does not end it; when nothing runs nobody looks.
func TestQuietStreamWhileNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stallRig(t)
		_, worker := g.pipeWorker("w1", 1)
		caller, next := g.pipeCaller(), g.pipeCaller()
		caller.WriteHeaders(1, noEnd, request(hello)...)
		worker.WantHeaders(1, noEnd)
		pass(time.Hour)
		next.WriteHeaders(1, end, request(hello)...)
		pass(stallTimeout / 2)
		if n := g.counted("caller_stalled"); n != 0 {
			t.Errorf("%d calls were ended at once", n)
		}
		caller.WriteData(1, end, hi())
		worker.WantDataBytes(1, hi(), end)
		reply(worker, 1)
		wantReply(caller, 1)
		worker.WantHeaders(3, end)
		reply(worker, 3)
		wantReply(next, 1)
		pass(stallTimeout)
		st := g.stands[0]
		st.do(func() {
			if st.stalls.timer.Set() {
				t.Error("the watch runs on without calls")
			}
		})
	})
}

// A caller in this process who does not read is one who does not take its answer.
func TestSlotsOfLocalCallsAreReclaimed(t *testing.T) {
	for name, reads := range map[string]bool{"reads nothing": false, "reads a byte at a time": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t, func(o *Options) {
					o.StallTimeout, o.QueueTimeout, o.OnCancel = stallTimeout, 24*time.Hour, rank.Free
					o.Keys = Keys{By: ByMetadata, Metadata: "x-tenant"}
				})
				_, worker := g.pipeWorker("w1", 2)
				worker.Skip(testkit.Data, testkit.RST)
				l, other := g.local(Caller{}), g.pipeCaller()
				calls := make([]LocalCall, 2)
				for i := range calls {
					open(t, l, &calls[i], LocalRequest{Head: headOf(request(hello, "x-tenant", "local")...), Body: hi(), End: true})
					worker.WantHeaders(uint32(1+2*i), noEnd)
					worker.WriteHeaders(uint32(1+2*i), noEnd, responseHead()...)
					worker.WriteData(uint32(1+2*i), noEnd, make([]byte, 1000))
				}
				synctest.Wait()
				other.WriteHeaders(1, end, request(hello, "x-tenant", "other")...)
				for range 20 {
					pass(stallEvery)
					for i := range calls {
						if reads {
							if _, err := calls[i].Read(make([]byte, 1)); err != nil {
								t.Fatal(err)
							}
						}
					}
				}
				if n := g.counted("slot_reclaimed"); n != 0 && reads || n != 1 && !reads {
					t.Errorf("%d slots were reclaimed", n)
				}
				for i := range calls {
					calls[i].Close()
				}
				other.Close()
			})
		})
	}
}
