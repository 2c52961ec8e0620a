package rank

import (
	"testing"
	"time"
)

// saturate keeps all slots of the only endpoint in use for a while, with calls
// that take run each, and returns when it ended.
func saturate(t *testing.T, r *Rank, calls []*caller, run time.Duration, from, to time.Duration) time.Duration {
	t.Helper()
	for now := from; now < to; {
		var running []*caller
		for _, c := range calls {
			lease, reply, _ := r.Acquire(&c.Ticket, c, now)
			if reply != Granted {
				break
			}
			c.lease = lease
			running = append(running, c)
		}
		if len(running) == 0 || len(running) == len(calls) {
			t.Fatalf("%d of %d calls run", len(running), len(calls))
		}
		now += run
		for _, c := range running {
			c.release(r, OK, now)
		}
	}
	return to
}

// An endpoint with a bound above its slots gets more of them while its calls
// take no longer, up to that bound; another worker in its place begins afresh.
func TestSlotsFollowRunTimes(t *testing.T) {
	r := New(Options{})
	e := r.Add("worker-1", EndpointOptions{Slots: 5, Least: 2, Most: 40, OnCancel: Free})
	r.SetReady(e, true, 0, nil)
	calls := make([]*caller, 41)
	for i := range calls {
		calls[i] = newCaller(0)
	}
	state := func() EndpointState { return r.Snapshot().Endpoints[0] }
	if s := state(); s.Slots != 40 || s.Limit != 5 || s.Adapts != "starting" {
		t.Errorf("at first %+v", s)
	}
	saturate(t, r, calls, 20*ms, 0, 20*time.Second)
	if s := state(); s.Limit != 40 || s.Adapts != "greatest" {
		t.Errorf("with room to grow %+v", s)
	}
	r.SetReady(e, false, 20*time.Second, nil)
	r.SetReady(e, true, 20*time.Second, nil)
	if s := state(); s.Limit != 5 || s.Adapts != "starting" {
		t.Errorf("a new worker begins with %+v", s)
	}
}

// Slots that make no sense are a mistake of the caller.
func TestAddRefusesBounds(t *testing.T) {
	for _, o := range []EndpointOptions{
		{}, {Slots: 1, Most: 5}, {Slots: 1, Least: 2, Most: 5}, {Slots: 6, Least: 2, Most: 5},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v was taken", o)
				}
			}()
			New(Options{}).Add("worker-1", o)
		}()
	}
}

// Slots that adapt cost a call no allocation.
func TestAdaptingAllocatesNothing(t *testing.T) {
	r := New(Options{})
	e := r.Add("worker-1", EndpointOptions{Slots: 1, Least: 1, Most: 20})
	r.SetReady(e, true, 0, nil)
	c := newCaller(0)
	c.Request.Method = r.Method("m")
	notices := make([]Notice, 0, 4)
	now := time.Duration(0)
	expectNoAllocs(t, "with slots that adapt", func() {
		lease, _, _ := r.Acquire(&c.Ticket, c, now)
		now += ms
		notices = r.Release(lease, OK, now, notices[:0])
		now += 10 * ms
		r.Tick(now, notices[:0])
	})
}
