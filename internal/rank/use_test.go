package rank

import (
	"testing"
	"time"
)

// Little's law holds of what Use tells: what calls ask for, the slots that they
// have, and for how long they wait.
func TestUse(t *testing.T) {
	r, e := newRank(t, 10, 2)
	first, second, third := newCaller(0), newCaller(0), newCaller(0)
	first.acquire(t, r, 100*ms, Granted)
	second.acquire(t, r, 200*ms, Granted)
	third.acquire(t, r, 250*ms, Queued)
	want := func(now time.Duration, u Use) {
		t.Helper()
		if got := r.Use(now); got != u {
			t.Errorf("at %v:\n got %+v\nwant %+v", now, got, u)
		}
	}
	want(300*ms, Use{Arrived: 3, SlotTime: 300 * ms, Slots: 2, Busy: 2, Ready: 1, Waiting: 1, Oldest: 50 * ms})
	first.release(r, OK, 400*ms)
	want(500*ms, Use{Arrived: 3, Ended: 1, SlotTime: 700 * ms, Slots: 2, Busy: 2, Ready: 1})
	second.release(r, RefusedByWorker, 600*ms)
	second.rejoin(t, r, 600*ms, Queued)
	want(600*ms, Use{Arrived: 3, Ended: 1, SlotTime: 900 * ms, Slots: 2, Busy: 1, Ready: 1, Waiting: 1})
	third.release(r, OK, 700*ms)
	r.SetReady(e[0], false, 700*ms, nil)
	want(900*ms, Use{Arrived: 3, Ended: 2, SlotTime: 1200 * ms, Busy: 1})
	second.release(r, Cancelled, 900*ms)
	want(time.Second, Use{Arrived: 3, Ended: 3, SlotTime: 1200 * ms})
}

// R5: a ghost takes its slot's time until it is given up, or its worker ends.
func TestUseOfGhosts(t *testing.T) {
	for _, ends := range []bool{false, true} {
		r := New(Options{QueueLength: 10})
		e := r.Add("worker-1", EndpointOptions{Slots: 1})
		r.SetReady(e, true, 0, nil)
		c := newCaller(0)
		c.acquire(t, r, 0, Granted)
		c.release(r, Cancelled, 100*ms)
		if u := r.Use(300 * ms); u.SlotTime != 300*ms || u.Busy != 1 || u.Ended != 1 {
			t.Errorf("with a ghost: %+v", u)
		}
		want := ghostUnknown
		if ends {
			want = 400 * ms
			r.EndPauses(e, want, nil)
		} else {
			r.Tick(want, nil)
		}
		if u := r.Use(time.Minute); u.SlotTime != want || u.Busy != 0 {
			t.Errorf("after the ghost: %+v, want slot time %v", u, want)
		}
	}
}

// The oldest wait is found in every queue: of any lane, account and endpoint.
func TestOldestWait(t *testing.T) {
	for name, o := range map[string]Options{
		"one queue": {QueueLength: 10, Lanes: []LaneOptions{{Name: "high", Priority: 1}}},
		"by hash":   {QueueLength: 10, Lanes: []LaneOptions{{Name: "high", Priority: 1}}, ByHash: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(o)
			for range 2 {
				e := r.Add("w", EndpointOptions{Slots: 1})
				r.SetReady(e, true, 0, nil)
				newCaller(0).acquire(t, r, 0, Granted)
			}
			for i := range 3 {
				c := newCaller(time.Duration(i+1) * ms)
				c.Request.Account = r.Open(string(rune('a'+i)), Terms{})
				c.Request.Lane, c.Request.Hash = uint8(i%2), uint64(i)
				c.acquire(t, r, time.Duration(i+1)*ms, Queued)
				if got := r.Use(10 * ms).Oldest; got != 9*ms {
					t.Errorf("with %d waiting: %v, want 9ms", i+1, got)
				}
			}
		})
	}
}
