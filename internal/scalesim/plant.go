package scalesim

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cabrank/cabrank/internal/ranksim"
	"github.com/cabrank/cabrank/internal/scale"
)

// lookEvery is how often the number of workers is decided.
const lookEvery = 250 * time.Millisecond

// Plant is a service and the calls on it.
type Plant struct {
	// Rate is how many calls, or batches of them, arrive per second at an
	// instant; Most bounds it.
	Rate func(at time.Duration) float64
	Most float64
	// Batch is how many calls arrive at once; 0 is one.
	Batch int
	// Service is how long calls run, and Slow by how much longer from an
	// instant on; nil is never.
	Service ranksim.Service
	Slow    func(at time.Duration) float64
	// Slots is the number of slots of each worker, and Boot how long one takes
	// to start.
	Slots int
	Boot  time.Duration
	// Scaler decides how many workers are wanted; nil leaves them as they are. It
	// belongs to one Run.
	Scaler *scale.Scaler
	// From is when measuring begins.
	From time.Duration
}

// Change is one change of what is wanted.
type Change struct {
	At       time.Duration
	From, To int
	Reason   scale.Reason
}

// Moment is how things are at a decision.
type Moment struct {
	At     time.Duration
	Wanted int // workers
	Ready  int
	Oldest time.Duration // how long the first call in the queue has waited
}

// Result is what became of a Run.
type Result struct {
	Waits         Waits
	WorkerSeconds float64 // processes that start and that finish their calls included
	Changes       []Change
	Moments       []Moment // one for each decision, or where one would be
}

// Wanted is how many workers are wanted at the end.
func (r *Result) Wanted() int { return r.Moments[len(r.Moments)-1].Wanted }

// Flaps counts the changes from an instant on, and those of them that take back
// another one of them: they are in the opposite direction of the one before.
func (r *Result) Flaps(from time.Duration) (flaps, changes int) {
	up := false
	for _, c := range r.Changes {
		if c.At < from {
			continue
		}
		if changes++; changes > 1 && (c.To > c.From) != up {
			flaps++
		}
		up = c.To > c.From
	}
	return flaps, changes
}

// Run lets time pass from zero until an instant, with so many workers at first.
// The calls are the same for the same seed, Rate, Most and Service as long as they
// start in the same order.
func (p Plant) Run(seed uint64, workers int, until time.Duration) *Result {
	r := &run{
		Plant: p, arrival: rand.New(rand.NewPCG(seed, 1)), length: rand.New(rand.NewPCG(seed, 2)),
		ready: workers, Result: &Result{},
	}
	r.Batch = max(r.Batch, 1)
	next := r.nextArrival()
	for tick := time.Duration(0); r.now < until; r.serve() {
		up, end := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
		if len(r.booting) > 0 {
			up = r.booting[0]
		}
		if len(r.ends) > 0 {
			end = r.ends[0]
		}
		r.pass(min(next, up, end, tick, until))
		switch r.now {
		case end:
			heap.Pop(&r.ends)
			r.served++
		case next:
			r.arrive()
			next = r.nextArrival()
		case up:
			r.booting = r.booting[1:]
			r.ready++
		case tick:
			r.decide()
			tick += lookEvery
		default: // the end
		}
	}
	return r.Result
}

// run is a Plant at work.
type run struct {
	Plant
	*Result

	arrival, length *rand.Rand

	now     time.Duration
	ready   int
	booting []time.Duration // when they will be ready
	ends    ends            // of the calls that run
	queue   []time.Duration // arrivals of those that wait, from first on
	first   int

	arrivals, served uint64
	slotTime         time.Duration
}

func (r *run) slots() int   { return r.ready * r.Slots }
func (r *run) waiting() int { return len(r.queue) - r.first }

// pass lets time pass in which nothing happens.
func (r *run) pass(to time.Duration) {
	passed := to - r.now
	r.slotTime += passed * time.Duration(len(r.ends))
	if r.now >= r.From {
		draining := max(0, (len(r.ends)+r.Slots-1)/r.Slots-r.ready)
		r.WorkerSeconds += passed.Seconds() * float64(r.ready+len(r.booting)+draining)
	}
	r.now = to
}

// nextArrival draws from a Poisson process whose rate changes, by thinning.
func (r *run) nextArrival() time.Duration {
	for at := r.now; ; {
		at += time.Duration(r.arrival.ExpFloat64() / r.Most * float64(time.Second))
		if r.arrival.Float64()*r.Most <= r.Rate(at) {
			return at
		}
	}
}

func (r *run) arrive() {
	for range r.Batch {
		r.arrivals++
		r.queue = append(r.queue, r.now)
	}
}

// serve starts calls as long as slots are free.
func (r *run) serve() {
	for len(r.ends) < r.slots() && r.waiting() > 0 {
		if r.now >= r.From {
			r.Waits.add(r.now - r.queue[r.first])
		}
		r.first++
		length := r.Service.Draw(r.length)
		if r.Slow != nil {
			length = time.Duration(float64(length) * r.Slow(r.now))
		}
		heap.Push(&r.ends, r.now+length)
	}
	if r.first > 4096 && r.first*2 > len(r.queue) {
		r.queue = append(r.queue[:0], r.queue[r.first:]...)
		r.first = 0
	}
}

// decide asks the Scaler, and starts workers or ends some.
func (r *run) decide() {
	before := r.ready + len(r.booting)
	wanted := before
	if r.Scaler != nil {
		d := r.Scaler.Decide(r.sample())
		wanted = d.Wanted
		if d.Changed {
			r.Changes = append(r.Changes, Change{r.now, before, wanted, d.Reason})
		}
	}
	for range wanted - before {
		r.booting = append(r.booting, r.now+r.Boot)
	}
	for range before - wanted {
		if last := len(r.booting) - 1; last >= 0 {
			r.booting = r.booting[:last]
		} else {
			r.ready--
		}
	}
	r.Moments = append(r.Moments, Moment{r.now, wanted, r.ready, r.oldest()})
}

func (r *run) oldest() time.Duration {
	if r.waiting() == 0 {
		return 0
	}
	return r.now - r.queue[r.first]
}

func (r *run) sample() scale.Sample {
	return scale.Sample{
		Now: r.now, Arrivals: r.arrivals, Served: r.served, SlotTime: r.slotTime,
		Waiting: r.waiting(), Oldest: r.oldest(),
		Ready: r.ready, Booting: len(r.booting), Slots: r.slots(), Boot: r.Boot,
	}
}

// ends is a heap of instants.
type ends []time.Duration

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i] < e[j] }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }

func (e *ends) Push(x any) { *e = append(*e, x.(time.Duration)) } //nolint:forcetypeassert // heap.Push is given nothing else

func (e *ends) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}
