package rank

import (
	"testing"
	"time"
)

// R8: calls that wait before anything is up, or while other calls have all slots, leave
// one, too, when slots come free.
func TestUntriedCallsThatWaitLeaveASlot(t *testing.T) {
	for _, byHash := range []bool{false, true} {
		r := New(Options{QueueLength: 20, ByHash: byHash})
		watch, get := r.Unnamed(), r.Method("/known.Known/Get")
		waiting := make([]*caller, 6)
		for i := range waiting {
			waiting[i] = with(nil, watch, 0)
			waiting[i].acquire(t, r, 0, Queued)
		}
		granted := func() (n int) {
			for _, c := range waiting {
				n += c.granted
			}
			return n
		}
		get.observe(ms, 0)
		deliver(r.SetReady(r.Add("worker-1", EndpointOptions{Slots: 3, OnCancel: Free}), true, 0, nil))
		if n := granted(); n != 2 {
			t.Errorf("by hash %v: %d of 3 slots went to a method of which nobody knows, want 2", byHash, n)
		}
		with(nil, get, 0).acquire(t, r, ms, Granted)

		r = New(Options{QueueLength: 20, ByHash: byHash})
		r.SetReady(r.Add("worker-1", EndpointOptions{Slots: 3, OnCancel: Free}), true, 0, nil)
		running := make([]*caller, 3)
		for i := range running {
			running[i] = with(nil, get, 0)
			running[i].acquire(t, r, 0, Granted)
		}
		for i := range waiting {
			waiting[i] = with(nil, watch, 0)
			waiting[i].acquire(t, r, 0, Queued)
		}
		for _, c := range running {
			c.release(r, OK, ms)
		}
		if n := granted(); n != 2 {
			t.Errorf("by hash %v: %d of 3 slots went to a method of which nobody knows, want 2", byHash, n)
		}
		with(nil, get, 0).acquire(t, r, 2*ms, Granted)
	}
}

// R8: one stream that is recognized has not given others the slot that is left.
func TestOneRecognizedStreamKeepsTheSlotLeft(t *testing.T) {
	r, _ := newRank(t, 20, 4)
	watch, get := r.Unnamed(), r.Unnamed()
	var running []*caller
	for range 3 {
		c := with(nil, watch, 0)
		c.acquire(t, r, 0, Granted)
		running = append(running, c)
	}
	for range 5 {
		with(nil, watch, 0).acquire(t, r, 0, Queued)
	}
	r.GoesOn(running[0].lease, ms)
	for at := 2 * ms; at < 30*time.Second; at += time.Second {
		c := with(nil, get, at)
		c.acquire(t, r, at, Granted)
		c.release(r, OK, at+ms)
	}
	if n := r.LongCalls(time.Minute); n != 3 {
		t.Errorf("%d long calls, want 3", n)
	}
}

// R8: a call of a method that is known to be long has the slot that is free for it
// while calls of another one wait to be known.
func TestLongCallPassesThoseThatNobodyKnows(t *testing.T) {
	r := New(Options{QueueLength: 20})
	r.SetReady(r.Add("worker-1", EndpointOptions{Slots: 2, OnCancel: Free}), true, 0, nil)
	watch, long := r.Unnamed(), r.Method("/chat.Chat/Stream")
	for range enough {
		long.observe(time.Minute, 0)
	}
	with(nil, watch, 0).acquire(t, r, 0, Granted)
	with(nil, watch, 0).acquire(t, r, 0, Queued)
	r.SetReady(r.Add("worker-2", EndpointOptions{Slots: 2, OnCancel: Free}), true, ms, nil)
	with(r.Open("b", Terms{}), long, 0).acquire(t, r, 2*ms, Granted)
	with(r.Open("b", Terms{}), long, 0).acquire(t, r, 2*ms, Queued) // they have all slots but one
	with(nil, r.Unnamed(), 0).acquire(t, r, 2*ms, Granted)
}
