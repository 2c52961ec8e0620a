package rank

import (
	"testing"
	"time"
)

// R8: calls of a method that usually run for long leave a slot to the others,
// and wait in a lane of their own.
func TestLongCallsLeaveASlot(t *testing.T) {
	r, _ := newRank(t, 10, 2, 2)
	long := r.Method("/chat.Chat/Stream")
	for range enough {
		long.observe(time.Minute, 0)
	}
	stream := func() *caller {
		c := newCaller(0)
		c.Request.Method = long
		return c
	}
	running := []*caller{stream(), stream(), stream()}
	for _, c := range running {
		c.acquire(t, r, 0, Granted)
	}
	waiting := stream()
	waiting.acquire(t, r, 0, Queued)
	short := newCaller(0)
	short.acquire(t, r, 0, Granted)
	short.release(r, OK, ms)
	if waiting.granted != 0 {
		t.Error("a fourth stream took the slot that is left to others")
	}
	if s := r.Snapshot(); s.LongCalls != 3 || s.Lanes[len(s.Lanes)-1].Waiting != 1 {
		t.Errorf("%+v", s)
	}
	if r.Decisions()["waited_for_stream_slots"] != 1 {
		t.Errorf("the wait was not counted: %v", r.Decisions())
	}
	running[1].release(r, OK, ms)
	if waiting.granted != 1 {
		t.Error("a stream has ended and the next one does not begin")
	}
}

// R8: every call that waits for stream slots is counted by that name, and none that
// does not wait.
func TestWaitsForStreamsAreCounted(t *testing.T) {
	for _, b := range []Balance{LateBinding, LeastRequest} {
		r := New(Options{QueueLength: 10, StreamSlots: 1, Balance: b, Lanes: []LaneOptions{{Name: "admin", Reserve: 1}}})
		r.SetReady(r.Add("worker-1", EndpointOptions{Slots: 3}), true, 0, nil)
		long := r.Method("/chat.Chat/Stream")
		long.observe(time.Minute, 0)
		with(nil, long, 0).acquire(t, r, 0, Granted)
		if _, ok := r.AcquireFree(&with(nil, long, 0).Ticket, 0); ok {
			t.Fatal("two streams")
		}
		with(nil, long, 0).acquire(t, r, 0, Queued)
		with(nil, long, 0).acquire(t, r, 0, Queued)
		newCaller(0).acquire(t, r, 0, Granted)
		newCaller(0).acquire(t, r, 0, Queued)
		if d := r.Decisions(); d["waited_for_stream_slots"] != 2 || d["waited_for_reserved_slots"] != 1 {
			t.Errorf("%v: %v", b, d)
		}
	}
}

// R8: calls of which nobody knows the method are not long because others of them
// were.
func TestUnknownCallsAreNotLong(t *testing.T) {
	r, _ := newRank(t, 10, 2)
	c := newCaller(0)
	c.acquire(t, r, 0, Granted)
	c.release(r, OK, time.Hour)
	c.acquire(t, r, time.Hour, Granted)
	if n := r.Snapshot().LongCalls; n != 0 {
		t.Errorf("%d long calls", n)
	}
}

// R8: any call older than 10 s counts.
func TestOldCallsAreLong(t *testing.T) {
	r, _ := newRank(t, 10, 2)
	long := r.Method("/chat.Chat/Stream")
	for range enough {
		long.observe(time.Minute, 0)
	}
	old, stream := newCaller(0), newCaller(0)
	old.acquire(t, r, 0, Granted)
	stream.Request.Method = long
	stream.acquire(t, r, 12*time.Second, Queued)
	old.release(r, OK, 13*time.Second)
	if stream.granted != 1 {
		t.Error("the stream waits for nobody")
	}
}
