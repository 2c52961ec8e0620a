package goal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cabrank/cabrank/lab/internal/traffic"
)

const (
	// precision is how near the two rates of an answer are.
	precision = 0.05
	// mostRuns is enough to grow a thousandfold and to narrow down to 5 %, with every rate
	// tried twice: (10 + 4) x 2, and what makes sure.
	mostRuns = 40
	// mostTime is enough for that with runs of 30 s, and pauses between them: no run begins
	// that would end later if it took as long as the one before.
	mostTime = 30 * time.Minute
	// mostRest is how long a service may take to recover between two runs.
	mostRest = 30 * time.Second
	// mostRate is the highest that traffic.ParseRate reads.
	mostRate = 1_000_000
)

// Run is what came of a run.
type Run struct {
	Record *traffic.Record
	// Busy is the share, 0 to 1, of the time for which the busiest core of the
	// generator was busy; 0 if not known.
	Busy float64
}

// Options are what Find has to know.
type Options struct {
	// Thresholds have to hold. Those that want a figure to be high (rate>=450) are
	// refused: they are missed at low rates, where the search begins.
	Thresholds Thresholds
	// First is the rate of the first run, in calls per second. The search goes up from
	// there, never below.
	First float64
	// Run makes an open loop at a rate, always for the same time.
	Run func(ctx context.Context, rate float64) (Run, error)
	// Probe makes a few calls one after the other, such as one caller for a second.
	// Its record says how the service is when nobody loads it.
	Probe func(ctx context.Context) (*traffic.Record, error)
	// Told, if given, is called after each run, by the goroutine that searches.
	Told func(Step, *traffic.Record)

	mostRuns int // other bounds, in tests
	mostTime time.Duration
}

// complete fills in bounds, and checks what people have given.
//
// Errors: one line.
func (o *Options) complete() error {
	o.mostRuns, o.mostTime = cmp.Or(o.mostRuns, mostRuns), cmp.Or(o.mostTime, mostTime)
	switch {
	case len(o.Thresholds) == 0:
		return errors.New("--find: at which thresholds? give --fail, such as --fail 'p99<100ms'")
	case !(o.First > 0) || o.First > mostRate:
		return fmt.Errorf("--find begins with --rate, and %v is not a rate above 0 and up to %d per second", o.First, mostRate)
	}
	for _, t := range o.Thresholds {
		if t.least() {
			return fmt.Errorf("--fail %q: --find looks for the highest rate, and this one is missed at low ones; want < or <=", t)
		}
	}
	return nil
}

// needs returns how long a run has to be for an overload of the precision to show.
//
// A service that gets 1+p times what it can do falls behind by p seconds in each second,
// so that the last calls of a run of T wait for p T. That has to be more than the limit.
func (o *Options) needs() (d time.Duration, by Threshold) {
	for _, t := range o.Thresholds {
		if t.unit != Nanoseconds {
			continue
		}
		if n := time.Duration(min(t.limit/precision, math.MaxInt64/2)); n > d {
			d, by = n, t
		}
	}
	return d, by
}
