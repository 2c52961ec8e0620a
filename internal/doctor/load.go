package doctor

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/scale"
)

const (
	// full is the part of the time of all slots from which on calls are refused because there
	// are too few of them; below it their deadlines are too short.
	full = .8
	// alwaysFull is the part of the looks at which all slots are taken and calls wait, of
	// workers that cannot keep up, though nobody is refused.
	alwaysFull = .95
	// mostWorkers is more than anybody runs.
	mostWorkers = 1 << 12
)

// tooFew finds workers that cannot keep up, and says how many would.
func tooFew(r *record) *Finding {
	if !r.loaded() || r.last.Load.Ready == 0 || !r.starved() {
		return nil
	}
	now, s := r.last.Load.Ready+r.last.Load.Booting, r.last.Load
	decided := r.staff()
	shed, late := float64(s.Shed-r.first.Load.Shed), r.p99(func(l admin.Live) admin.LiveTimes { return l.Seconds })
	f := &Finding{
		Name: "too_few_workers", Level: Warning, Do: fmt.Sprintf("workers: %d, or cabrank scale %d", decided.Wanted, decided.Wanted),
		Figures: map[string]float64{"workers": float64(now), "wanted": float64(decided.Wanted), "refused": shed, "p99_seconds": late.Seconds()},
	}
	if shed > 0 {
		f.Level = Error
	}
	lost := "calls wait all the time"
	if shed > 0 {
		lost = fmt.Sprintf("%.0f of %.0f calls were refused for want of a slot", shed, r.calls)
	}
	if decided.Wanted <= now {
		f.Says = lost + ": " + cmp.Or(decided.Words, "the load needs more than the workers have") + ", and " + decided.Reason.String() + " allows no more workers"
		f.Do = "more CPU or memory for this container, or another one beside it"
		return f
	}
	then := r.simulate(float64(s.Slots) / float64(s.Ready) * float64(decided.Wanted))
	f.Figures["p99_then_seconds"] = then.Seconds()
	f.Says = fmt.Sprintf("%s: %d → %d workers, p99 %v → about %v", lost, now, decided.Wanted, short(late), short(then))
	return f
}

// short is a time for people.
func short(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

// loaded reports whether the load is known: there are workers, and a cabrank that tells.
func (r *record) loaded() bool { return r.first.Load != nil && r.last.Load != nil }

// starved reports whether calls are refused for lack of slots, or wait all the time.
func (r *record) starved() bool {
	if shed := float64(r.last.Load.Shed - r.first.Load.Shed); shed > fewRefusals && r.share(shed) >= someShare {
		return r.used() >= full
	}
	waits := 0
	for _, l := range r.looks {
		if l.Load != nil && l.Load.Waiting > 0 {
			waits++
		}
	}
	return float64(waits) >= alwaysFull*float64(len(r.looks)) && r.used() >= alwaysFull
}

// used is the part of the time of all slots that calls have had them.
func (r *record) used() float64 {
	slots := float64(r.last.Load.Slots + r.last.Load.Others)
	return (r.last.Load.SlotTime - r.first.Load.SlotTime).Seconds() / math.Max(slots*r.seconds, 1e-9)
}

// staff is what `workers: MIN-MAX` would decide without bounds.
func (r *record) staff() (d scale.Decision) {
	s := r.first.Load
	scaler := scale.New(scale.Options{Min: 1, Max: mostWorkers}, s.Ready+s.Booting, s.Slots/max(s.Ready, 1))
	for _, l := range r.looks {
		if l.Load != nil {
			d = scaler.Decide(*l.Load)
		}
	}
	return d
}

// simulatedCalls make the 99th percentile of a simulation sure to some percent.
const simulatedCalls = 50_000

// freeAt is a heap of the instants at which slots are free, in seconds.
type freeAt struct{ sort.Float64Slice }

// Push implements heap.Interface; slots neither come nor go.
func (f freeAt) Push(any) {}

// Pop implements heap.Interface.
func (f freeAt) Pop() any { return nil }

// simulate is the 99th percentile of the time of calls if there were so many slots: calls
// come independently, as many as now, run as long as now, and wait in one queue.
func (r *record) simulate(slots float64) time.Duration {
	rate := float64(r.last.Load.Arrivals-r.first.Load.Arrivals) / r.seconds
	draw := r.drawWork()
	if rate <= 0 || draw == nil {
		return 0
	}
	random := rand.New(rand.NewPCG(1, 2)) // the same each time
	free, now := freeAt{make(sort.Float64Slice, max(int(slots), 1))}, 0.0
	times := make([]float64, simulatedCalls)
	for i := range times {
		now += random.ExpFloat64() / rate
		end := math.Max(now, free.Float64Slice[0]) + draw(random)
		free.Float64Slice[0], times[i] = end, end-now
		heap.Fix(free, 0)
	}
	slices.Sort(times)
	return time.Duration(times[simulatedCalls*99/100] * float64(time.Second))
}

// drawWork draws times that calls have slots, evenly within each bucket; nil if none is known.
func (r *record) drawWork() func(*rand.Rand) float64 {
	counts := r.between(func(l admin.Live) admin.LiveTimes { return l.Worked })
	bounds := r.last.Worked.Bounds
	all := sum(counts)
	if all == 0 {
		return nil
	}
	return func(random *rand.Rand) float64 {
		left := random.Float64() * all
		for i, n := range counts {
			if left -= n; left < 0 && i < len(bounds) {
				low := 0.0
				if i > 0 {
					low = bounds[i-1]
				}
				return low + random.Float64()*(bounds[i]-low)
			}
		}
		return bounds[len(bounds)-1]
	}
}

// shortDeadlines finds calls whose deadlines pass while they wait, though slots are free at
// other times.
func shortDeadlines(r *record) *Finding {
	late := r.refused("deadline_queued", "deadline_shed")
	if late <= fewRefusals || r.share(late) < someShare || r.loaded() && r.starved() {
		return nil
	}
	wait := r.p99(func(l admin.Live) admin.LiveTimes { return l.Waited })
	return &Finding{
		Name: "short_deadlines", Level: Error, Figures: map[string]float64{"late": late, "calls": r.calls, "wait_p99_seconds": wait.Seconds()},
		Says: fmt.Sprintf("the deadlines of %.0f of %.0f calls would have passed in the queue, where calls wait %v (p99), though slots are free at other times", late, r.calls, short(wait)),
		Do:   "longer deadlines in the callers, or more workers for the bursts (workers)",
	}
}
