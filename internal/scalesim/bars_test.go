//go:build !race

package scalesim

import (
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/ranksim"
	"github.com/cabrank/cabrank/internal/scale"
	"github.com/cabrank/cabrank/internal/testkit"
)

// What the number of workers must reach (docs/workers.md), under a virtual clock:
// the same seed gives the same figures on every machine. A flap is a change in
// the opposite direction of the change before it, both after the first half hour of
// a load that stays the same. The best fixed number is the smallest at which 99 %
// of the calls wait for less than the mean service time; it knows what comes.

const (
	settling = 30 * time.Minute
	barSeed  = 11
)

// say prints a part of a table, for make bars.
func say(format string, args ...any) { fmt.Fprintf(os.Stdout, format, args...) }

// work is what calls are in a bar.
type work struct {
	name    string
	service ranksim.Service
	mean    time.Duration
	each    int // slots of a worker
}

// short are calls of which one in twenty is long: the mixture of ranksim.Mixed
// at a fifth of its pace, which makes a day of it simulate in seconds.
func short() work {
	mixture := ranksim.Mixture{Often: ranksim.Exponential(50 * time.Millisecond), Rare: ranksim.Exponential(1050 * time.Millisecond), Share: 0.05}
	return work{"mixed 100 ms, 5 slots", mixture, 100 * time.Millisecond, 5}
}

func plain() work {
	return work{"exponential 200 ms, 1 slot", ranksim.Exponential(200 * time.Millisecond), 200 * time.Millisecond, 1}
}
func long() work {
	return work{"exponential 2 s, 5 slots", ranksim.Exponential(2 * time.Second), 2 * time.Second, 5}
}

// plant makes one for this work, with a load in workers that are always busy.
func (w work) plant(load func(time.Duration) float64, most float64) Plant {
	perWorker := float64(w.each) / w.mean.Seconds()
	return Plant{
		Rate: func(at time.Duration) float64 { return load(at) * perWorker }, Most: most * perWorker,
		Service: w.service, Slots: w.each,
	}
}

// adaptive makes one whose number of workers follows the load.
func (w work) adaptive(load func(time.Duration) float64, most float64, boot time.Duration, start int) Plant {
	p := w.plant(load, most)
	p.Boot, p.Scaler = boot, scale.New(scale.Options{Min: 1, Max: 40}, start, w.each)
	return p
}

// bestFixed runs the smallest number of workers that serves the load well.
func (w work) bestFixed(load func(time.Duration) float64, most float64, from, until time.Duration) (int, *Result) {
	p := w.plant(load, most)
	p.From = from
	for n := int(math.Ceil(most)); ; n++ {
		if r := p.Run(barSeed, n, until); r.Waits.Quantile(0.99) < w.mean {
			return n, r
		}
	}
}

func always(load float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return load }
}

// A load that stays the same keeps its workers, whatever chance does.
func TestBarSteadyLoad(t *testing.T) {
	say("| work | load, of 8 workers | workers | best fixed | worker-seconds | waits p99 | max | changes | flaps |\n")
	say("|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, w := range []work{short(), plain(), long()} {
		for _, share := range barLoads() {
			load := share * 8
			p := w.adaptive(always(load), load, 2*time.Second, 1)
			p.From = settling
			r := p.Run(barSeed, 1, barDay)
			best, fixed := w.bestFixed(always(load), load, settling, settling+barFixed)
			flaps, changes := r.Flaps(settling)
			mean := r.WorkerSeconds / (barDay - settling).Seconds()
			ratio, p99 := mean/float64(best), r.Waits.Quantile(0.99)
			say("| %s | %.2f | %.2f | %d | %.2f | %v | %v | %d | %d |\n", w.name, share, mean, best, ratio,
				p99.Round(time.Millisecond), r.Waits.Max().Round(time.Millisecond), changes, flaps)
			testkit.Want(t, flaps == 0 && changes <= 1,
				"%s at %.2f: %d flaps, %d changes after half an hour: %v", w.name, share, flaps, changes, r.Changes)
			testkit.Want(t, p99 <= 3*w.mean/2,
				"%s at %.2f: p99 of the wait is %v, more than 1.5 times the service time", w.name, share, p99)
			testkit.Want(t, mean <= float64(best)*1.34+0.5,
				"%s at %.2f: %.2f workers, best fixed %d (p99 %v)", w.name, share, mean, best, fixed.Waits.Quantile(0.99))
		}
	}
}

// Calls that come in batches keep their workers as well: the load is steady, only
// uneven.
func TestBarBatches(t *testing.T) {
	w := short()
	load := always(0.4) // of batches; each is 10 calls
	p := w.adaptive(load, 0.4, 2*time.Second, 1)
	p.Batch = 10
	r := p.Run(barSeed, 1, barDay)
	flaps, changes := r.Flaps(settling)
	testkit.Want(t, flaps == 0 && changes <= 1, "%d flaps, %d changes: %v", flaps, changes, r.Changes)
}

// changing is a load that changes, in workers that are always busy: 1x is four.
type changing struct {
	name  string
	load  func(time.Duration) float64
	until time.Duration
	ratio float64 // most worker-seconds, of the best fixed number's
	wait  func(boot time.Duration) time.Duration
}

func loads() []changing {
	const low, high = 0.3 * 4, 2.0 * 4
	from := 10 * time.Minute
	return []changing{
		{"step 0.3x to 2x, 5 min", func(at time.Duration) float64 {
			if at >= from && at < from+5*time.Minute {
				return high
			}
			return low
		}, 40 * time.Minute, 0.65, func(boot time.Duration) time.Duration { return boot + 100*time.Millisecond }},
		{"ramp over 5 min, 5 min", func(at time.Duration) float64 {
			switch since := at - from; {
			case since < 0 || since > 10*time.Minute:
				return low
			case since < 5*time.Minute:
				return low + (high-low)*since.Minutes()/5
			}
			return high
		}, 40 * time.Minute, 0.75, func(time.Duration) time.Duration { return 3 * time.Second }},
		{"bursts, 20 s in 10 min", func(at time.Duration) float64 {
			if at%from >= from-20*time.Second {
				return high
			}
			return low
		}, time.Hour, 1.25, func(boot time.Duration) time.Duration { return boot + 100*time.Millisecond }},
		{"a day's curve in 4 h", func(at time.Duration) float64 {
			return (high+low)/2 - (high-low)/2*math.Cos(2*math.Pi*at.Hours()/4)
		}, 4 * time.Hour, 0.85, func(time.Duration) time.Duration { return time.Second }},
	}
}

// Loads that change are followed: workers are asked for within a second and a
// half of a step, and before they are needed on a slope.
func TestBarChangingLoad(t *testing.T) {
	const high = 2.0 * 4
	say("| work | load | boot | workers, mean | best fixed | worker-seconds | waits p50 | p99 | max | best fixed p99 | changes |\n")
	say("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, w := range []work{short(), plain()} {
		for _, c := range loads() {
			best, fixed := w.bestFixed(c.load, high, 0, c.until)
			for _, boot := range []time.Duration{time.Second, 5 * time.Second, 30 * time.Second} {
				r := w.adaptive(c.load, high, boot, 2).Run(barSeed, 2, c.until)
				ratio := r.WorkerSeconds / fixed.WorkerSeconds
				say("| %s | %s | %v | %.2f | %d | %.2f | %v | %v | %v | %v | %d |\n", w.name, c.name, boot, r.WorkerSeconds/c.until.Seconds(), best, ratio,
					r.Waits.Quantile(0.5).Round(time.Millisecond), r.Waits.Quantile(0.99).Round(time.Millisecond), r.Waits.Max().Round(time.Millisecond),
					fixed.Waits.Quantile(0.99).Round(time.Millisecond), len(r.Changes))
				testkit.Want(t, ratio <= c.ratio,
					"%s, %s, boot %v: worker-seconds %.2f of the best fixed number's, at most %.2f", w.name, c.name, boot, ratio, c.ratio)
				if limit := c.wait(boot) + 4*w.mean; r.Waits.Max() > limit {
					t.Errorf("%s, %s, boot %v: a call waited for %v, at most %v", w.name, c.name, boot, r.Waits.Max(), limit)
				}
			}
		}
	}
}

// A step is answered in full within two seconds.
func TestBarStepIsSeenAtOnce(t *testing.T) {
	for _, w := range []work{short(), plain()} {
		step := loads()[0]
		r := w.adaptive(step.load, 8, 5*time.Second, 2).Run(barSeed, 2, 10*time.Minute+2*time.Second)
		if wanted := r.Wanted(); wanted < 8 {
			t.Errorf("%s: two seconds after the step %d workers are wanted, less than the load: %v", w.name, wanted, r.Changes)
		}
	}
}

// Calls that take three times as long, with the same arrivals, get their workers
// although arrivals tell nothing.
func TestBarServiceSlowsDown(t *testing.T) {
	for _, w := range []work{short(), plain()} {
		p := w.adaptive(always(2), 2, 5*time.Second, 3)
		p.Slow = func(at time.Duration) float64 {
			if at > 10*time.Minute {
				return 3
			}
			return 1
		}
		p.From = 12 * time.Minute
		r := p.Run(barSeed, 3, 30*time.Minute)
		n := r.Wanted()
		testkit.Want(t, n >= 6 && n <= 16, "%s: %d workers for a load of 6: %v", w.name, n, r.Changes)
		p99 := r.Waits.Quantile(0.99)
		testkit.Want(t, p99 <= 3*w.mean, "%s: two minutes later the p99 of the wait is %v", w.name, p99)
	}
}

// headroom is the beta of package scale.
const headroom = 1.5

// From two busy slots on, 99 % of the calls wait for less than 1.5 times the service
// time, or of a mixture on few slots for 4.5 times, with at most 15 % more slots than
// would do. With a beta of 1 they wait for up to nine times the service time, with 2 a
// fifth of the slots is too much.
func TestBarHeadroom(t *testing.T) {
	exponential := work{"exponential", ranksim.Exponential(20 * time.Millisecond), 20 * time.Millisecond, 1}
	mixed := work{"mixed", ranksim.Mixed(), 20 * time.Millisecond, 1}
	say("| service | load in slots | best fixed | with beta 1 | p99 / service | 1.5 | | 2 | |\n")
	say("|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, w := range []work{exponential, mixed} {
		for _, load := range []float64{2, 4, 8, 16, 32} {
			until := time.Duration(barCalls / load * float64(w.mean))
			best, _ := w.bestFixed(always(load), load, 0, until)
			say("| %s | %v | %d |", w.name, load, best)
			for _, beta := range []float64{1, headroom, 2} {
				n := int(math.Ceil(load + beta*math.Sqrt(load)))
				wait := w.plant(always(load), load).Run(barSeed, n, until).Waits.Quantile(0.99).Seconds() / w.mean.Seconds()
				say(" %d | %.1f |", n, wait)
				if beta == headroom && (wait > 4.5 || load >= 8 && wait > 1.5 || float64(n) > 1.15*float64(best)) {
					t.Errorf("%s %v: %d slots (best %d), p99 of the wait %.1f service times", w.name, load, n, best, wait)
				}
			}
			say("\n")
		}
	}
}
