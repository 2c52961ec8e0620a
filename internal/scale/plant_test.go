//go:build !race

package scale

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cabrank/cabrank/internal/ranksim"
)

// plant is a service under a virtual clock: calls that arrive, one queue in the
// order of arrival, workers with slots that take time to start, and a Scaler that
// looks at it every 250 ms; or a fixed number of workers. It ends calls that waited
// longer than their callers do, and knows nothing else.
type plant struct {
	rate    func(t time.Duration) float64 // calls (or batches) per second
	most    float64                       // bounds rate
	batch   int                           // calls that come at once, 0 is 1
	service ranksim.Service
	mean    time.Duration // of service
	each    int           // slots of a worker
	boot    time.Duration
	limit   time.Duration                 // for which callers wait; 0 is for ever
	slow    func(t time.Duration) float64 // factor of service; nil is 1
	scaler  *Scaler                       // nil: fixed
	from    time.Duration                 // measures begin here

	random  *rand.Rand
	now     time.Duration
	ready   int
	booting []time.Duration
	busy    int
	ends    ends
	queue   []time.Duration // arrivals
	first   int             // of the queue

	arrivals, served, shed uint64
	slotTime               time.Duration

	waits   waits
	failed  int
	workers float64 // seconds
	changes []change
}

// change is one change of what is wanted.
type change struct {
	at       time.Duration
	from, to int
	reason   Reason
}

type ends []time.Duration

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i] < e[j] }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(time.Duration)) }
func (e *ends) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

const forever = time.Duration(math.MaxInt64)

// run lets time pass until an instant, from zero with so many workers ready.
func (p *plant) run(seed uint64, workers int, until time.Duration) *plant {
	p.random = rand.New(rand.NewPCG(seed, 1))
	p.ready = workers
	arrival, tick := p.nextArrival(), time.Duration(0)
	for p.now < until {
		end, up := forever, forever
		if len(p.ends) > 0 {
			end = p.ends[0]
		}
		if len(p.booting) > 0 {
			up = p.booting[0]
		}
		next := min(arrival, end, up, tick, until)
		p.pass(next)
		switch next {
		case end:
			heap.Pop(&p.ends)
			p.busy--
			p.served++
		case arrival:
			for range max(p.batch, 1) {
				p.arrive()
			}
			arrival = p.nextArrival()
		case up:
			p.booting = p.booting[1:]
			p.ready++
		default: // tick, or the end
			if next != tick {
				break
			}
			p.decide()
			tick += 250 * time.Millisecond
		}
		p.serve()
	}
	return p
}

// pass lets time pass in which nothing happens.
func (p *plant) pass(to time.Duration) {
	passed := to - p.now
	p.slotTime += passed * time.Duration(p.busy)
	if p.now >= p.from {
		draining := max(0, (p.busy+p.each-1)/p.each-p.ready)
		p.workers += passed.Seconds() * float64(p.ready+len(p.booting)+draining)
	}
	p.now = to
}

// nextArrival draws from a Poisson process whose rate changes, by thinning.
func (p *plant) nextArrival() time.Duration {
	at := p.now
	for {
		at += time.Duration(p.random.ExpFloat64() / p.most * float64(time.Second))
		if p.random.Float64()*p.most <= p.rate(at) {
			return at
		}
	}
}

func (p *plant) arrive() {
	p.arrivals++
	waiting := len(p.queue) - p.first
	if p.limit > 0 && p.busy >= p.ready*p.each &&
		time.Duration(waiting)*p.mean/time.Duration(max(p.ready*p.each, 1)) > p.limit {
		p.fail()
		return
	}
	p.queue = append(p.queue, p.now)
}

func (p *plant) fail() {
	p.shed++
	if p.now >= p.from {
		p.failed++
	}
}

func (p *plant) serve() {
	for p.busy < p.ready*p.each && p.first < len(p.queue) {
		wait := p.now - p.queue[p.first]
		p.first++
		if p.first > 4096 && p.first*2 > len(p.queue) {
			p.queue = append(p.queue[:0], p.queue[p.first:]...)
			p.first = 0
		}
		if p.limit > 0 && wait > p.limit {
			p.fail()
			continue
		}
		if p.now >= p.from {
			p.waits.add(wait)
		}
		p.busy++
		run := p.service.Draw(p.random)
		if p.slow != nil {
			run = time.Duration(float64(run) * p.slow(p.now))
		}
		heap.Push(&p.ends, p.now+run)
	}
}

func (p *plant) decide() {
	if p.scaler == nil {
		return
	}
	d := p.scaler.Decide(p.sample())
	before := p.ready + len(p.booting)
	if d.Changed {
		p.changes = append(p.changes, change{p.now, before, d.Wanted, d.Reason})
	}
	for range d.Wanted - before {
		p.booting = append(p.booting, p.now+p.boot)
	}
	for range before - d.Wanted {
		if len(p.booting) > 0 {
			p.booting = p.booting[:len(p.booting)-1]
		} else {
			p.ready--
		}
	}
}

func (p *plant) sample() Sample {
	s := Sample{
		Now: p.now, Arrivals: p.arrivals, Served: p.served, SlotTime: p.slotTime, Shed: p.shed,
		Waiting: len(p.queue) - p.first, Ready: p.ready, Booting: len(p.booting), Slots: p.ready * p.each, Boot: p.boot,
	}
	if s.Waiting > 0 {
		s.Oldest = p.now - p.queue[p.first]
	}
	return s
}

// flaps counts changes in the opposite direction of the one before, from an
// instant on.
func (p *plant) flaps(from time.Duration) (flaps, changes int) {
	for i, c := range p.changes {
		if c.at < from {
			continue
		}
		changes++
		if i > 0 && (c.to > c.from) != (p.changes[i-1].to > p.changes[i-1].from) {
			flaps++
		}
	}
	return flaps, changes
}

// waits is a histogram of waits with buckets of 2 %.
type waits struct {
	counts [1500]int
	all    int
	zero   int
	max    time.Duration
	sum    float64
}

const waitUnit = float64(time.Microsecond)

func (w *waits) add(d time.Duration) {
	w.all++
	w.sum += d.Seconds()
	w.max = max(w.max, d)
	if d == 0 {
		w.zero++
		return
	}
	i := int(math.Log(math.Max(float64(d)/waitUnit, 1)) / math.Log(1.02))
	w.counts[min(i, len(w.counts)-1)]++
}

func (w *waits) quantile(q float64) time.Duration {
	left := int(q*float64(w.all)) - w.zero
	if left <= 0 {
		return 0
	}
	for i, n := range w.counts {
		if left -= n; left <= 0 {
			return time.Duration(math.Pow(1.02, float64(i)+0.5) * waitUnit)
		}
	}
	return w.max
}
