package relay

import (
	"testing"
	"testing/synctest"
	"time"
)

// Load counts what calls ask for, the time that they have slots, and those that
// found none.
func TestLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, func(o *Options) { o.QueueLength, o.QueueTimeout = 1, time.Second })
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.AnyOrder()
		before := g.Load()
		caller.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(1, end)
		caller.WriteHeaders(3, end, request(hello)...)
		g.wantWaiting(1)
		caller.WriteHeaders(5, end, request(hello)...)
		wantStatus(caller, 5, "8", "cabrank: queue full")
		pass(500 * time.Millisecond)
		if l := g.Load(); l.Arrived != 3 || l.Busy != 1 || l.Waiting != 1 || l.Shed != 1 || l.Oldest < 500*time.Millisecond {
			t.Errorf("%+v", l)
		}
		wantStatus(caller, 3, "8", "cabrank: no free slot in time")
		reply(worker, 1)
		wantReply(caller, 1)
		l := g.Load()
		if l.Ended != 1 || l.Busy != 0 || l.Shed != 2 || l.SlotTime < time.Second || l.SlotTime > l.At.Sub(before.At) {
			t.Errorf("%+v", l)
		}
	})
}
