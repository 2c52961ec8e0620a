//go:build !race

package rank

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"
)

// pool is asynchronous workers behind one rank whose slots adapt, and callers
// who each make one call after the other.
type pool struct {
	*testing.T
	rank    *Rank
	workers []*async // by index of their endpoints
	callers []*caller
	running ends // work is the caller
	done    []int
	now     time.Duration
}

func newPool(t *testing.T, callers int, workers ...*async) *pool {
	t.Helper()
	p := &pool{T: t, rank: New(Options{QueueLength: callers}), workers: workers, done: make([]int, len(workers))}
	for i, w := range workers {
		w.random = rand.New(rand.NewPCG(1, uint64(i)))
		e := p.rank.Add("worker", EndpointOptions{Slots: 5, Least: 1, Most: 200, OnCancel: Free})
		p.rank.SetReady(e, true, 0, nil)
	}
	method := p.rank.Method("m")
	for range callers {
		c := newCaller(0)
		c.Request.Method = method
		p.callers = append(p.callers, c)
		p.call(len(p.callers) - 1)
	}
	return p
}

func (p *pool) call(i int) {
	c := p.callers[i]
	lease, reply, reason := p.rank.Acquire(&c.Ticket, c, p.now)
	if c.lease = lease; reply == Refused {
		p.Fatalf("refused: %v", reason)
	}
	if reply == Granted {
		p.send(i)
	}
}

func (p *pool) send(i int) {
	w := p.workers[p.callers[i].lease.Endpoint().Index()]
	w.now = p.now
	e := w.serve(p.now)
	e.work = i
	heap.Push(&p.running, e)
}

// run goes on until an instant and returns how many calls a second each worker
// did.
func (p *pool) run(until time.Duration) []float64 {
	from := p.now
	clear(p.done)
	for p.running[0].at < until {
		e := heap.Pop(&p.running).(end)
		p.now = e.at
		c := p.callers[e.work]
		p.done[c.lease.Endpoint().Index()]++
		notices := p.rank.Release(c.lease, OK, p.now, nil)
		for _, g := range notices {
			g.Deliver()
			for i, waiter := range p.callers {
				if g.Waiter == waiter {
					p.send(i)
				}
			}
		}
		p.call(e.work)
	}
	rates := make([]float64, len(p.done))
	for i, n := range p.done {
		rates[i] = float64(n) / (until - from).Seconds()
	}
	p.now = until
	return rates
}

// Three workers behind one rank, one with half the processor, find their limits
// side by side: run times are compared with those of all.
func TestAdaptInAPool(t *testing.T) {
	t.Parallel()
	works := serviceOf(exponential(ms), exponential(20*ms))
	half := &async{works: works, cpuAt: func(time.Duration) float64 { return 2 }}
	p := newPool(t, 150, &async{works: works}, &async{works: works}, half)
	p.run(20 * time.Second)
	rates := p.run(60 * time.Second)
	t.Logf("%.0f calls/s, at last %+v", rates, p.rank.Snapshot().Endpoints)
	for i, most := range []float64{1000, 1000, 500} {
		if rates[i] < 0.9*most {
			t.Errorf("worker %d does %.0f/s of %.0f/s", i, rates[i], most)
		}
	}
	for i, e := range p.rank.Snapshot().Endpoints {
		if e.Limit > 80 {
			t.Errorf("worker %d has %d slots", i, e.Limit)
		}
	}
}
