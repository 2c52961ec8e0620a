package rank

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// law draws a duration.
type law func(*rand.Rand) time.Duration

func always(d time.Duration) law { return func(*rand.Rand) time.Duration { return d } }

func exponential(mean time.Duration) law {
	return func(r *rand.Rand) time.Duration { return time.Duration(r.ExpFloat64() * float64(mean)) }
}

// mixed is 95 % exponential around 10 ms and 5 % around 210 ms.
func mixed(r *rand.Rand) time.Duration {
	if r.Float64() < 0.95 {
		return exponential(10 * ms)(r)
	}
	return exponential(210 * ms)(r)
}

// work is one method: what a call of it needs of the worker's one processor, in
// the order of arrival, and for how long it then waits for something else.
type work struct {
	share     float64 // of the calls
	cpu, wait law
}

// async is a worker that takes any number of calls, the demand on it and the
// limit that is tested.
type async struct {
	works   []work
	rate    float64                       // calls per second by chance; 0 keeps the limit reached
	cpuAt   func(t time.Duration) float64 // factor on all cpu; nil is 1
	waitAt  func(t time.Duration) float64 // factor on all wait
	fixed   int                           // a fixed limit, or 0
	refuses int                           // beyond so many calls in flight it refuses; 0 never
	limit   adaptive

	random  *rand.Rand
	now     time.Duration
	cpuFree time.Duration // when the processor has done what is known
	means   []learned     // by method
	running ends
	queue   []time.Duration // arrivals
	next    time.Duration   // arrival
	again   time.Duration   // when a slot that was refused is tried again
	seconds []second
}

// second is what happened in one second.
type second struct {
	calls, refused int
	run, sojourn   time.Duration // sums
	lowest, last   int           // limit
}

// learned is a mean that forgets as slowly as that of a Method.
type learned struct{ mean, samples float64 }

func (l *learned) add(d time.Duration) {
	l.samples = min(l.samples+1, memory)
	l.mean += (float64(d) - l.mean) / l.samples
}

// end is when a call ends.
type end struct {
	at, began, arrived time.Duration
	work               int
}

// ends is a heap of them.
type ends []end

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at < e[j].at }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

// run lets the worker work for so long.
func (a *async) run(seed uint64, d time.Duration) *async {
	a.random = rand.New(rand.NewPCG(seed, 1))
	a.means = make([]learned, len(a.works))
	if a.limit.allowed == 0 {
		a.limit = newAdaptive(1, 10, 200, int(seed))
	}
	a.seconds = make([]second, d/time.Second)
	a.arrive()
	for {
		a.start()
		at := a.next
		if a.rate == 0 || len(a.running) > 0 && a.running[0].at <= at {
			at = a.running[0].at
		}
		if a.again > a.now && a.again < at {
			a.now = a.again
			continue
		}
		if at >= d {
			return a
		}
		a.now = at
		if len(a.running) > 0 && a.running[0].at == at {
			a.finish(heap.Pop(&a.running).(end))
		} else {
			a.queue = append(a.queue, at)
			a.arrive()
		}
	}
}

func (a *async) arrive() {
	if a.rate > 0 {
		a.next += time.Duration(a.random.ExpFloat64() / a.rate * float64(time.Second))
	}
}

// start sends calls as long as the limit allows.
func (a *async) start() {
	for a.now >= a.again && len(a.running) < a.allowed() && (a.rate == 0 || len(a.queue) > 0) {
		if a.refuses > 0 && len(a.running) >= a.refuses {
			a.here().refused++
			a.again = a.now + ms
			a.limit.refused(len(a.running), a.now)
			return
		}
		arrived := a.now
		if a.rate > 0 {
			arrived, a.queue = a.queue[0], a.queue[1:]
		}
		heap.Push(&a.running, a.serve(arrived))
		a.limit.started(len(a.running), a.now)
	}
}

func (a *async) allowed() int {
	if a.fixed > 0 {
		return a.fixed
	}
	return a.limit.allowed
}

func (a *async) serve(arrived time.Duration) end {
	w, pick := 0, a.random.Float64()
	for w < len(a.works)-1 && pick >= a.works[w].share {
		pick -= a.works[w].share
		w++
	}
	cpu := scaled(a.works[w].cpu(a.random), a.cpuAt, a.now)
	wait := scaled(a.works[w].wait(a.random), a.waitAt, a.now)
	a.cpuFree = max(a.cpuFree, a.now) + cpu
	return end{at: a.cpuFree + wait, began: a.now, arrived: arrived, work: w}
}

func scaled(d time.Duration, at func(time.Duration) float64, now time.Duration) time.Duration {
	if at == nil {
		return d
	}
	return time.Duration(float64(d) * at(now))
}

func (a *async) finish(e end) {
	run, mean := a.now-e.began, &a.means[e.work]
	a.limit.finished(run, time.Duration(mean.mean), len(a.running)+1, OK, a.now)
	mean.add(run)
	s := a.here()
	s.calls++
	s.run += run
	s.sojourn += a.now - e.arrived
}

func (a *async) here() *second {
	s := &a.seconds[a.now/time.Second]
	s.last = a.limit.limit
	if s.lowest == 0 || s.last < s.lowest {
		s.lowest = s.last
	}
	return s
}

// output is how much a worker did between two instants.
type output struct {
	perSecond    float64
	run, sojourn time.Duration // means
	lowest       int           // limit
	refused      int
}

// between sums up the seconds from one on to before another.
func (a *async) between(from, to int) output {
	f := output{lowest: a.seconds[from].lowest}
	calls := 0
	for _, s := range a.seconds[from:to] {
		calls += s.calls
		f.run += s.run
		f.sojourn += s.sojourn
		f.refused += s.refused
		f.lowest = min(f.lowest, s.lowest)
	}
	f.perSecond = float64(calls) / float64(to-from)
	f.run /= time.Duration(max(calls, 1))
	f.sojourn /= time.Duration(max(calls, 1))
	return f
}

// bestFixed returns the smallest of many fixed limits that reaches 99 % of the
// best throughput, and what that does.
func bestFixed(works []work, cpu, wait float64) (int, output) {
	limits := []int{1, 12, 21, 24, 28, 33, 42, 80, 110, 200}
	flows := make([]output, len(limits))
	most := 0.0
	factor := func(f float64) func(time.Duration) float64 { return func(time.Duration) float64 { return f } }
	for i, n := range limits {
		a := &async{works: works, fixed: n, cpuAt: factor(cpu), waitAt: factor(wait)}
		flows[i] = a.run(1, 6*time.Second).between(2, 6)
		most = max(most, flows[i].perSecond)
	}
	for i, f := range flows {
		if f.perSecond >= 0.99*most {
			return limits[i], f
		}
	}
	panic("unreachable: one of them is the best")
}
