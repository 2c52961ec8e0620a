package relay

import (
	"testing"
	"testing/synctest"
	"time"
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
