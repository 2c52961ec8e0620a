package rank

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// Acquire and Release of a call that does not wait, one after another.
func BenchmarkUncontended(b *testing.B) {
	for _, endpoints := range []int{1, 4, 64} {
		b.Run(fmt.Sprint(endpoints, " endpoints"), func(b *testing.B) {
			r, _ := newRank(b, 0, equal(endpoints, 5)...)
			c := newCaller(0)
			var notices []Notice
			b.ReportAllocs()
			for b.Loop() {
				lease, _, _ := r.Acquire(&c.Ticket, c, 0)
				notices = r.Release(lease, OK, 0, notices[:0])
			}
		})
	}
}

// The same from several goroutines at once, as many shards: the cost of the lock
// and of the memory behind it that moves from core to core.
func BenchmarkAcquireReleaseContended(b *testing.B) {
	for _, goroutines := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprint(goroutines, " goroutines"), func(b *testing.B) {
			r, _ := newRank(b, 0, equal(4, 1000)...)
			var running sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for range goroutines {
				running.Go(func() { r.takeTurns(b.N / goroutines) })
			}
			running.Wait()
		})
	}
}

func (r *Rank) takeTurns(n int) {
	c := newCaller(0)
	var notices []Notice
	for range n {
		lease, _, _ := r.Acquire(&c.Ticket, c, 0)
		notices = r.Release(lease, OK, 0, notices[:0])
	}
}

// One release, one grant and one newcomer at the tail of 10,000 waiting calls.
func BenchmarkTenThousandWaiting(b *testing.B) {
	r, running := crowd(b, 10_000)
	notices := make([]Notice, 0, 1)
	b.ReportAllocs()
	for b.Loop() {
		running, notices = r.next(running, notices)
	}
}

// The same among the calls of many callers, with time going by: shares are
// looked at, and each call comes with what was learned of its method.
func BenchmarkTenThousandWaitingOfManyCallers(b *testing.B) {
	for _, callers := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprint(callers, " callers"), func(b *testing.B) {
			r, running := crowdOf(b, 10_000, callers)
			notices := make([]Notice, 0, 1)
			now := time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				now += ms
				running, notices = r.nextAt(running, now, notices)
			}
		})
	}
}

// A call without waiting on one of many endpoints, of which one is slow and a slot
// is reserved: neither may cost a look at all of them.
func BenchmarkManyEndpoints(b *testing.B) {
	for _, endpoints := range []int{10, 1000} {
		b.Run(fmt.Sprint(endpoints, " endpoints"), func(b *testing.B) {
			r := New(Options{Lanes: []LaneOptions{{Name: "admin", Reserve: 1}}})
			for range endpoints {
				r.SetReady(r.Add("worker", EndpointOptions{Slots: 5}), true, 0, nil)
			}
			r.slow, r.up[0].pace.slow = 1, true
			c := newCaller(0)
			var notices []Notice
			b.ReportAllocs()
			for b.Loop() {
				lease, _, _ := r.Acquire(&c.Ticket, c, 0)
				notices = r.Release(lease, OK, 0, notices[:0])
			}
		})
	}
}

// A refusal and the end of its pause beside many slots that are held for ghosts.
func BenchmarkPauseBesideGhosts(b *testing.B) {
	for _, ghosts := range []int{1, 10_000} {
		b.Run(fmt.Sprint(ghosts, " ghosts"), func(b *testing.B) {
			r, _ := newRank(b, 0, ghosts+1)
			var notices []Notice
			for range ghosts {
				c := newCaller(0)
				c.Request.OnCancel = Hold
				c.acquire(b, r, 0, Granted)
				c.release(r, Cancelled, 0)
			}
			c := newCaller(0)
			now := time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				now++
				lease, _, _ := r.Acquire(&c.Ticket, c, now)
				notices = r.ReleaseAt(lease, OK, now+1, now, notices[:0])
				notices, _ = r.Tick(now+1, notices)
			}
		})
	}
}

// A call without waiting, of a known method and one of two callers.
func BenchmarkKnownCaller(b *testing.B) {
	r, _ := newRank(b, 0, equal(4, 5)...)
	m := r.Method("/a.B/C")
	r.Open("other", Terms{})
	c := with(r.Open("caller", Terms{}), m, 0)
	var notices []Notice
	now := time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		now += ms
		lease, _, _ := r.Acquire(&c.Ticket, c, now)
		notices = r.Release(lease, OK, now+ms/2, notices[:0])
	}
}

// A call leaves from the middle of 10,000 waiting ones and comes back.
func BenchmarkLeaveAmongTenThousand(b *testing.B) {
	r, _ := crowd(b, 10_000)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		c := r.calls[i%len(r.calls)]
		i += 7919
		if r.Leave(&c.Ticket) {
			r.Acquire(&c.Ticket, c, 0)
		}
	}
}

// An Acquire that finds the queue full.
func BenchmarkRefused(b *testing.B) {
	r, _ := newRank(b, 0, 1)
	holder, c := newCaller(0), newCaller(0)
	holder.acquire(b, r, 0, Granted)
	b.ReportAllocs()
	for b.Loop() {
		r.Acquire(&c.Ticket, c, 0)
	}
}

// Neither the way without waiting, nor waiting, nor a refusal and its pause
// allocates once the slices have grown.
func TestNothingIsAllocated(t *testing.T) {
	r, _ := newRank(t, 1, 5, 5, 5, 5)
	c := newCaller(0)
	notices := make([]Notice, 0, 4)
	expectNoAllocs(t, "without waiting", func() {
		lease, _, _ := r.Acquire(&c.Ticket, c, 0)
		notices = r.Release(lease, OK, 0, notices[:0])
	})
	waiting, running := crowd(t, 100)
	expectNoAllocs(t, "with waiting", func() {
		running, notices = waiting.next(running, notices)
	})
	many, some := crowdOf(t, 1000, 100)
	now := time.Duration(0)
	for range 2000 { // each caller has waited once
		now += ms
		some, notices = many.nextAt(some, now, notices)
	}
	expectNoAllocs(t, "with waiting of many callers", func() {
		now += ms
		some, notices = many.nextAt(some, now, notices)
	})
	now = 0
	expectNoAllocs(t, "with a refusal", func() {
		lease, _, _ := r.Acquire(&c.Ticket, c, now)
		r.Release(lease, RefusedByWorker, now, notices[:0])
		lease, _ = r.Rejoin(&c.Ticket, c, now)
		r.Release(lease, OK, now, notices[:0])
		now += time.Second
		r.Tick(now, notices[:0])
	})
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

func expectNoAllocs(t *testing.T, what string, do func()) {
	t.Helper()
	if n := testing.AllocsPerRun(1000, do); n != 0 {
		t.Errorf("%s: %v allocations, want 0", what, n)
	}
}

// crowded is a rank with one slot taken and many calls waiting for it.
type crowded struct {
	*Rank
	calls []*caller
}

func crowd(tb testing.TB, waiting int) (crowded, *caller) {
	tb.Helper()
	r, _ := newRank(tb, waiting, 1)
	running := newCaller(0)
	running.acquire(tb, r, 0, Granted)
	calls := make([]*caller, waiting)
	for i := range calls {
		calls[i] = newCaller(0)
		calls[i].acquire(tb, r, 0, Queued)
	}
	return crowded{r, calls}, running
}

// crowdOf is a crowd of several callers with calls of one method.
func crowdOf(tb testing.TB, waiting, callers int) (crowded, *caller) {
	tb.Helper()
	r, _ := newRank(tb, waiting, 1)
	m := r.Method("/a.B/C")
	running := with(nil, m, 0)
	running.acquire(tb, r, 0, Granted)
	accounts := make([]*Account, callers)
	for i := range accounts {
		accounts[i] = r.Open(fmt.Sprint(i), Terms{})
	}
	calls := make([]*caller, waiting)
	for i := range calls {
		calls[i] = with(accounts[i%callers], m, 0)
		calls[i].acquire(tb, r, 0, Queued)
	}
	return crowded{r, calls}, running
}

// next ends the running call, sends it to the tail and returns the one that
// runs now.
func (c crowded) next(running *caller, notices []Notice) (*caller, []Notice) {
	return c.nextAt(running, 0, notices)
}

func (c crowded) nextAt(running *caller, now time.Duration, notices []Notice) (*caller, []Notice) {
	notices = c.Release(running.lease, OK, now, notices[:0])
	for _, g := range notices {
		g.Deliver()
	}
	running.Request.Arrived = now
	if _, reply, _ := c.Acquire(&running.Ticket, running, now); reply != Queued || len(notices) != 1 {
		panic(fmt.Sprintf("%v with %d notices, want queued with 1", reply, len(notices)))
	}
	return notices[0].Waiter.(*caller), notices
}

func equal(n, slots int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = slots
	}
	return list
}
