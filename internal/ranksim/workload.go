package ranksim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// Workload says which calls come. The zero value has none.
type Workload struct {
	// Seed chooses the random numbers. Each caller has a sequence of its own,
	// so its calls stay the same when another caller changes.
	Seed uint64
	// Until is the instant of the last arrival at the latest.
	Until time.Duration
	// Callers make the calls; Call.Caller is an index into them.
	Callers []Caller
	// Bursts change everybody's rate for a while. They are in order of time and
	// do not overlap.
	Bursts []Burst
}

// Caller is one source of calls, independent of all others.
type Caller struct {
	// Rate is the mean number of calls per second; they arrive as a Poisson
	// process.
	Rate float64
	// Service is how long their handlers run.
	Service Service
	// Method is a small number for the method that it calls; with a negative one
	// the rank is not told which, and learns nothing.
	Method int
	// Timeout is the time from the arrival of a call to its deadline; 0 means no
	// deadline.
	Timeout time.Duration
	// Cancel is the share of calls, from 0 to 1, whose caller leaves before its
	// answer has come: at a moment that is uniform in the time that the call
	// would take on Slots slots in the order of arrival.
	Cancel float64
	// Slots is read only if Cancel is not 0.
	Slots int
}

// Burst multiplies the rates from one instant to another.
type Burst struct {
	From, To time.Duration
	Factor   float64
}

// Call is one call as it was drawn; nothing in it depends on what serves it.
type Call struct {
	// Arrives is the instant at which the call comes.
	Arrives time.Duration
	// Service is how long its handler runs on a worker of ordinary speed.
	Service time.Duration
	// Deadline is the instant after which its answer is worth nothing; 0 means no
	// deadline.
	Deadline time.Duration
	// Leaves is the instant at which its caller cancels; 0 means never.
	Leaves time.Duration
	// Luck is uniform in [0,1); it decides what happens by chance at a worker.
	Luck float64
	// Caller is the index of its caller in the workload, Method the caller's.
	Caller, Method int
	// Key is the same for calls that belong together; Draw leaves it 0.
	Key uint64
}

// gone returns the instant at which the caller stops waiting, or 0.
func (c *Call) gone() time.Duration {
	if c.Leaves != 0 && (c.Deadline == 0 || c.Leaves < c.Deadline) {
		return c.Leaves
	}
	return c.Deadline
}

// Draw makes the calls, in the order of their arrival.
func (w Workload) Draw() []Call {
	var calls []Call
	for i := range w.Callers {
		calls = w.draw(i, calls)
	}
	slices.SortStableFunc(calls, func(a, b Call) int { return cmp.Compare(a.Arrives, b.Arrives) })
	w.drawCancels(calls)
	return calls
}

// draw appends the calls of one caller.
func (w Workload) draw(caller int, calls []Call) []Call {
	c := w.Callers[caller]
	if c.Rate <= 0 {
		return calls
	}
	random := rand.New(rand.NewPCG(w.Seed, uint64(caller)))
	for now := w.next(0, c.Rate, random); now <= w.Until; now = w.next(now, c.Rate, random) {
		call := Call{Arrives: now, Service: c.Service.Draw(random), Luck: random.Float64(), Caller: caller, Method: c.Method}
		if c.Timeout > 0 {
			call.Deadline = now + c.Timeout
		}
		calls = append(calls, call)
	}
	return calls
}

// next returns the arrival after now: the rate times the time until then, over
// all bursts on the way, is exponential with mean 1.
func (w Workload) next(now time.Duration, rate float64, random *rand.Rand) time.Duration {
	left := random.ExpFloat64() / rate * float64(time.Second)
	for {
		factor, until := w.factor(now)
		at := now + time.Duration(left/factor)
		if until == 0 || at < until {
			return at
		}
		left -= float64(until-now) * factor
		now = until
	}
}

// factor returns the factor of the rates at now, and until when it counts; 0 means for
// ever.
func (w Workload) factor(now time.Duration) (float64, time.Duration) {
	for _, b := range w.Bursts {
		switch {
		case now < b.From:
			return 1, b.From
		case now < b.To:
			return b.Factor, b.To
		}
	}
	return 1, 0
}

// drawCancels decides which callers leave, and when. The moment comes from an
// ideal of the same calls, so that it is the same whatever serves them.
func (w Workload) drawCancels(calls []Call) {
	random := rand.New(rand.NewPCG(w.Seed, cancelStream))
	ideals := map[int]*Result{}
	for i := range calls {
		chance, moment := random.Float64(), random.Float64()
		c := w.Callers[calls[i].Caller]
		if chance >= c.Cancel {
			continue
		}
		if ideals[c.Slots] == nil {
			ideals[c.Slots] = FirstCome(patient(calls), c.Slots, Handlers{})
		}
		calls[i].Leaves = calls[i].Arrives + time.Duration(moment*float64(ideals[c.Slots].Records[i].Sojourn))
	}
}

// cancelStream is the number of the random sequence for cancels. No caller uses it.
const cancelStream = 1 << 63

// patient returns the calls without deadlines and cancels.
func patient(calls []Call) []Call {
	all := slices.Clone(calls)
	for i := range all {
		all[i].Leaves, all[i].Deadline = 0, 0
	}
	return all
}
