package rank

import (
	"testing"
	"time"
)

// R8: calls of a method that usually run for long leave a slot to the others,
// and wait in a lane of their own.
func TestLongCallsLeaveASlot(t *testing.T) {
	r, _ := newRank(t, 10, 2, 2)
	long := knownMethod(r, time.Minute)
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
	for _, byHash := range []bool{false, true} {
		r := New(Options{QueueLength: 10, StreamSlots: 1, ByHash: byHash, Lanes: []LaneOptions{{Name: "admin", Reserve: 1}}})
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
			t.Errorf("by hash %v: %v", byHash, d)
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
	long := knownMethod(r, time.Minute)
	old, stream := newCaller(0), newCaller(0)
	old.acquire(t, r, 0, Granted)
	stream.Request.Method = long
	stream.acquire(t, r, 12*time.Second, Queued)
	old.release(r, OK, 13*time.Second)
	if stream.granted != 1 {
		t.Error("the stream waits for nobody")
	}
}

// R8: until the first call of a method has ended it gets all slots but one, and
// calls of other methods the one.
func TestUntriedMethodsLeaveASlot(t *testing.T) {
	for _, byHash := range []bool{false, true} {
		r := New(Options{QueueLength: 20, ByHash: byHash})
		r.SetReady(r.Add("worker-1", EndpointOptions{Slots: 4}), true, 0, nil)
		watch, get := r.Unnamed(), r.Unnamed()
		streams := make([]*caller, 8)
		for i := range streams {
			streams[i] = with(r.Open(string(rune('a'+i)), Terms{}), watch, 0)
			streams[i].acquire(t, r, 0, []Reply{Granted, Queued}[min(i/3, 1)])
		}
		for i := range 3 {
			c := with(nil, get, time.Duration(i)*ms)
			c.acquire(t, r, time.Duration(i)*ms, Granted)
			c.release(r, OK, time.Duration(i+1)*ms)
		}
		if d := r.Decisions()["waited_for_stream_slots"]; d != 5 {
			t.Errorf("by hash %v: %d waits counted", byHash, d)
		}
		streams[0].release(r, Cancelled, 20*time.Second)
		tick(r, 22*time.Second)
		if streams[3].granted != 1 || streams[4].granted != 0 {
			t.Errorf("by hash %v: the next stream did not begin, or two did", byHash)
		}
		with(nil, get, 0).acquire(t, r, 22*time.Second, Granted)
	}
}

// R8: when the first call of a method has ended soon its others have all slots,
// those included that wait already, whoever waits before them.
func TestTriedMethodsGetAllSlots(t *testing.T) {
	r, _ := newRank(t, 20, 4)
	watch, get := r.Unnamed(), r.Unnamed()
	calls := make([]*caller, 6)
	for i := range calls {
		calls[i] = with(nil, get, 0)
		calls[i].acquire(t, r, 0, []Reply{Granted, Queued}[min(i/3, 1)])
	}
	with(nil, watch, 0).acquire(t, r, 0, Granted)
	calls[0].release(r, OK, ms)
	if calls[3].granted != 1 {
		t.Error("the next call waits")
	}
	if s := r.Snapshot(); s.Lanes[len(s.Lanes)-1].Waiting != 0 || s.Lanes[0].Waiting != 2 {
		t.Errorf("%+v", s.Lanes)
	}
	with(nil, get, 0).acquire(t, r, ms, Queued)
	calls[1].release(r, OK, 2*ms)
	calls[2].release(r, OK, 2*ms)
	if calls[4].granted != 1 || calls[5].granted != 1 {
		t.Error("calls wait while slots are free")
	}
}

// R8: with one slot in all there is nothing to keep, and stream_slots may give
// streams everything.
func TestNothingToKeep(t *testing.T) {
	r, _ := newRank(t, 20, 1)
	with(nil, r.Unnamed(), 0).acquire(t, r, 0, Granted)
	r = New(Options{QueueLength: 20, StreamSlots: 2})
	r.SetReady(r.Add("worker-1", EndpointOptions{Slots: 2}), true, 0, nil)
	m := r.Unnamed()
	with(nil, m, 0).acquire(t, r, 0, Granted)
	with(nil, m, 0).acquire(t, r, 0, Granted)
}

// R8: an answer that goes on makes a call a long one at once, though the first of
// its method has ended soon; and age does by the clock alone.
func TestStreamsAreRecognized(t *testing.T) {
	r, _ := newRank(t, 20, 4)
	watch := r.Unnamed()
	first := with(nil, watch, 0)
	first.acquire(t, r, 0, Granted)
	first.release(r, OK, ms)
	calls := []*caller{with(nil, watch, 0), with(nil, watch, 0), with(nil, watch, 0)}
	for _, c := range calls {
		c.acquire(t, r, ms, Granted)
	}
	if n := r.LongCalls(ms); n != 0 {
		t.Errorf("%d long calls", n)
	}
	for _, c := range calls {
		r.GoesOn(c.lease, 2*ms)
		r.GoesOn(c.lease, 2*ms)
	}
	if n := r.LongCalls(2 * ms); n != 3 {
		t.Errorf("%d long calls, not 3", n)
	}
	with(nil, watch, 0).acquire(t, r, 3*ms, Queued)
	other := newCaller(0)
	other.acquire(t, r, 3*ms, Granted)
	if n := r.LongCalls(12 * time.Second); n != 4 {
		t.Errorf("%d long calls, not 4", n)
	}
	other.release(r, OK, 13*time.Second)
	for _, c := range calls[:2] {
		c.release(r, OK, 13*time.Second)
	}
	if n := r.LongCalls(14 * time.Second); n != 2 {
		t.Errorf("%d long calls, not 2: one that runs, one that waited", n)
	}
}

// Streams at a worker whose slots follow the run times have slots of their own: as
// many as Most leaves, and other calls those that were found.
func TestStreamsBesideAnAdaptiveLimit(t *testing.T) {
	r := New(Options{QueueLength: 200})
	e := r.Add("worker-1", EndpointOptions{Slots: 5, Least: 1, Most: 160, OnCancel: Free})
	r.SetReady(e, true, 0, nil)
	watch := r.Unnamed()
	streams := make([]*caller, 150)
	for i := range streams {
		streams[i] = with(nil, watch, 0)
		streams[i].acquire(t, r, 0, []Reply{Granted, Queued}[min(i/4, 1)])
	}
	for running := 0; running < len(streams); {
		before := running
		for ; running < len(streams) && streams[running].lease.Valid(); running++ {
			r.GoesOn(streams[running].lease, ms)
		}
		if running == before {
			t.Fatalf("%d streams run", running)
		}
		tick(r, ms)
	}
	unary := make([]*caller, 5)
	for i := range unary {
		unary[i] = newCaller(0)
		unary[i].acquire(t, r, ms, Granted)
	}
	if s := r.Snapshot().Endpoints[0]; s.Limit != 155 || r.LongCalls(ms) != 150 {
		t.Errorf("%+v", s)
	}
	for _, c := range unary[1:] {
		c.release(r, OK, 2*ms)
	}
	for i := range 10 { // streams may have all but one of those that there can be
		with(nil, watch, 0).acquire(t, r, 2*ms, []Reply{Granted, Queued}[min(i/9, 1)])
	}
	if s := r.Snapshot().Endpoints[0]; s.InFlight != 160 || s.Limit != 160 {
		t.Errorf("%+v", s)
	}
	for _, c := range streams {
		c.release(r, Cancelled, 20*time.Second)
	}
	if s := r.Snapshot().Endpoints[0]; s.Limit != 5+10 {
		t.Errorf("%+v", s)
	}
}
