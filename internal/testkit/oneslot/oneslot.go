// Package oneslot tries a balancer on workers that run one call at a time, the
// kind that cannot hide a bad choice: calls with arrivals and service times
// that are drawn in advance, real workers and callers for them, and what a
// perfect queue would have made of the same draw.
//
// Start from Demand, Trial and Worker; Judge puts together what callers and
// workers have seen. Both tell the time by the machine's monotonic clock, so
// that their records can be compared across processes.
//
// It chooses no balancer and starts no process: that is for those who use it.
package oneslot

import (
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"
)

// Call is one call of a trial.
type Call struct {
	At      time.Duration // when it is due, since the beginning of the trial
	Service time.Duration // how long a worker needs for it

	Method   string        // "/package.Service/Method"; empty is Method
	Request  proto.Message // nil tells Service; what else a worker understands is for it to say
	Metadata []string      // keys and values, in turn
	Leave    time.Duration // after which its caller leaves; 0 for never
}

// Mix is a distribution of service times: one of two exponential ones.
type Mix struct {
	Short, Long time.Duration // means
	LongShare   float64       // 0 to 1, of the calls
}

// Mixed is 95 % short calls of 10 ms and 5 % long ones of 210 ms.
func Mixed() Mix {
	return Mix{Short: 10 * time.Millisecond, Long: 210 * time.Millisecond, LongShare: 0.05}
}

// Mean is the mean service time.
func (m Mix) Mean() time.Duration {
	return time.Duration(float64(m.Short)*(1-m.LongShare) + float64(m.Long)*m.LongShare)
}

func (m Mix) draw(random *rand.Rand) time.Duration {
	mean := m.Short
	if random.Float64() < m.LongShare {
		mean = m.Long
	}
	return time.Duration(random.ExpFloat64() * float64(mean))
}

// Demand is what the calls of a trial ask for in all. The same Demand makes the
// same calls.
type Demand struct {
	Seed    uint64
	Calls   int
	Workers int
	Load    float64 // share of the workers' time: 1 is all of it, more is an overload
	Mix     Mix     // the zero value is Mixed()
}

// Draw makes the calls. The gaps between them are exponential, as those of many
// callers that know nothing of each other.
func (d Demand) Draw() []Call {
	if d.Mix == (Mix{}) {
		d.Mix = Mixed()
	}
	random := rand.New(rand.NewPCG(d.Seed, 0))
	gap := float64(d.Mix.Mean()) / (d.Load * float64(d.Workers))
	calls := make([]Call, d.Calls)
	at := 0.0
	for i := range calls {
		at += random.ExpFloat64() * gap
		calls[i] = Call{At: time.Duration(at), Service: d.Mix.draw(random)}
	}
	return calls
}

// Ideal returns how long each call takes, waiting included, in one queue
// without any cost: in the order of arrival each goes to the worker that is
// free first (M/G/k for the calls of a Demand). Calls are in the order of At.
func Ideal(calls []Call, workers int) []time.Duration {
	free := make([]time.Duration, workers) // when each worker is
	took := make([]time.Duration, len(calls))
	for i, c := range calls {
		first := 0
		for w := range free {
			if free[w] < free[first] {
				first = w
			}
		}
		free[first] = max(free[first], c.At) + c.Service
		took[i] = free[first] - c.At
	}
	return took
}
