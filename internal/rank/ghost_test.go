package rank

import (
	"testing"
	"time"
)

// R5: the slot of a cancelled call is held until nearly all calls of its method
// would have ended.
func TestGhosts(t *testing.T) {
	for _, test := range []struct {
		name   string
		known  time.Duration // run time of the method's calls, 0: not known
		age    time.Duration
		how    OnCancel
		until  time.Duration // after the grant; 0: free at once
		doubts int
	}{
		{name: "young", known: 100 * ms, age: 10 * ms, until: 104 * ms},
		{name: "old", known: 100 * ms, age: 400 * ms, until: 500 * ms},
		{name: "very old", known: 100 * ms, age: time.Minute, until: 61 * time.Second},
		{name: "a stream", known: time.Minute, age: 2 * time.Minute, doubts: 1},
		{name: "unknown", age: 10 * ms, until: time.Second},
		{name: "very long", known: time.Hour, age: ms, until: 30 * time.Second},
		{name: "free", known: 100 * ms, age: 10 * ms, how: Free},
		{name: "finish", known: 100 * ms, age: 10 * ms, how: Finish},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := New(Options{QueueLength: 10})
			e := r.Add("worker-1", EndpointOptions{Slots: 1})
			r.SetReady(e, true, 0, nil)
			m := r.Method("/a.B/C")
			for range enough {
				if test.known > 0 {
					m.observe(test.known, 0)
				}
			}
			c, next := with(nil, m, 0), newCaller(0)
			c.Request.OnCancel = test.how
			c.acquire(t, r, 0, Granted)
			next.acquire(t, r, 0, Queued)
			c.release(r, Cancelled, test.age)
			if (next.granted == 1) != (test.until == 0) || e.doubts != test.doubts {
				t.Fatalf("granted %d times, %d doubts", next.granted, e.doubts)
			}
			if test.until == 0 {
				return
			}
			if s := r.Snapshot().Endpoints[0]; s.Ghosts != 1 || s.Paused != 1 {
				t.Errorf("%+v", s)
			}
			_, at := r.Tick(test.age, nil)
			if ratio := float64(at) / float64(test.until); ratio < 0.94 || ratio > 1.06 {
				t.Errorf("the ghost is gone at %v, want about %v", at, test.until)
			}
			notices, _ := r.Tick(at, nil)
			if deliver(notices) != 1 || r.Snapshot().Endpoints[0].Ghosts != 0 {
				t.Error("the slot was not handed on")
			}
		})
	}
}

// R5: nobody is sent to a worker that may still be busy with a ghost while
// another one is idle.
func TestDoubtfulSlotsComeLast(t *testing.T) {
	r := New(Options{QueueLength: 10})
	for range 2 {
		r.SetReady(r.Add("worker", EndpointOptions{Slots: 1}), true, 0, nil)
	}
	m := knownMethod(r, 10*ms)
	c := with(nil, m, 0)
	c.acquire(t, r, 0, Granted)
	doubtful := c.lease.Endpoint()
	c.release(r, Cancelled, time.Second)
	r.Tick(2*time.Second, nil)
	for i := range 5 {
		now := 2*time.Second + time.Duration(i)*20*ms
		c = with(nil, m, now)
		c.acquire(t, r, now, Granted)
		if c.lease.Endpoint() == doubtful {
			t.Fatalf("call %d went to the doubtful worker", i)
		}
		c.release(r, OK, now+10*ms)
	}
}
