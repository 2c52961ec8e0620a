package rank

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R8: every call that waits for stream slots is counted by that name, and none that
// does not wait.
func TestWaitsForStreamsAreCounted(t *testing.T) {
	for _, byHash := range []bool{false, true} {
		r := New(Options{QueueLength: 10, StreamSlots: 1, ByHash: byHash, Lanes: []LaneOptions{{Name: "admin", Reserve: 1}}})
		r.SetReady(r.Add("worker-1", EndpointOptions{Slots: 3}), true, 0, nil)
		long := r.Method("/chat.Chat/Stream")
		long.observe(time.Minute, 0)
		with(nil, long, 0).acquire(t, r, 0, Granted)
		_, ok := r.AcquireFree(&with(nil, long, 0).Ticket, 0)
		testkit.Need(t, !ok, "two streams")
		with(nil, long, 0).acquire(t, r, 0, Queued)
		with(nil, long, 0).acquire(t, r, 0, Queued)
		newCaller(0).acquire(t, r, 0, Granted)
		newCaller(0).acquire(t, r, 0, Queued)
		d := r.Decisions()
		testkit.Want(t, d["waited_for_stream_slots"] == 2 && d["waited_for_reserved_slots"] == 1, "by hash %v: %v", byHash, d)
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
		testkit.Want(t, streams[3].granted == 1 && streams[4].granted == 0, "by hash %v: the next stream did not begin, or two did", byHash)
		with(nil, get, 0).acquire(t, r, 22*time.Second, Granted)
	}
}
