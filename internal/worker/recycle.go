package worker

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/cabrank/cabrank/internal/process"
)

const (
	// recycleSpread is how far below the limits of Options a process may draw its own,
	// so that workers started together are not recycled together.
	recycleSpread = 0.1
	// steadyMemory is the least age at which a process is recycled for its memory. A
	// process that needs more than the limit from the start would otherwise be replaced
	// again and again, for nothing.
	steadyMemory = 60 * time.Second
	// steadyBoots is the same in boot times: a worker that takes a minute to start is not
	// replaced every minute.
	steadyBoots = 10
	// A spare that does not become ready postpones recycling for recyclePause, and each
	// further one in a row for twice as long as the one before, up to recyclePauseMax: old
	// workers are better than none.
	recyclePause    = time.Minute
	recyclePauseMax = time.Hour
	// recycleGap is the least time between two replacements: a request that waits for the
	// end of one comes first.
	recycleGap = 50 * time.Millisecond
)

// Recycle says when a worker that is well is replaced by a fresh one: against
// leaks and fragmented heaps. The zero value recycles nobody.
//
// Each process draws its own limits of calls and age, up to 10 % below these.
// One worker at a time is replaced, as in a rolling restart, and none while a
// rolling restart runs. Memory is known on Linux only.
type Recycle struct {
	Calls  int           `key:"calls" default:"0" range:"0..1000000000" change:"reload" help:"calls served after which a worker is replaced by a fresh one, up to a tenth earlier (0: never)"`
	Age    time.Duration `key:"age" default:"0s" range:"1s..8760h" zero:"never" change:"reload" help:"age at which a worker is replaced by a fresh one, up to a tenth earlier"`
	Memory MemoryLimit   `key:"memory" kind:"memory" default:"0" change:"reload" help:"resident memory of a worker's processes above which it is replaced by a fresh one; or share of the container's memory limit above which the largest worker is"`
}

// MemoryLimit is what a worker may take; zero: any amount.
type MemoryLimit struct {
	Bytes   int64 // resident, of the processes of its group together; what several share counts once
	Percent int   // of the control group's memory limit, 1 to 100, beyond which the largest worker is replaced
}

// weighs reports whether memory has to be known.
func (r Recycle) weighs() bool { return r.Memory != MemoryLimit{} }

// limits are the limits of one process.
type limits struct {
	calls  uint64        // 0: none
	age    time.Duration // 0: none
	memory int64         // 0: none
	steady time.Duration // younger ones are not replaced for their memory
}

// draw returns the limits of a process that took boot until it was ready, for a
// chance from 0 to 1. The memory limit is the same for all: their memory differs by
// itself.
func (r Recycle) draw(boot time.Duration, chance float64) limits {
	part := 1 - recycleSpread*chance
	drawn := limits{
		age: time.Duration(float64(r.Age) * part), memory: r.Memory.Bytes,
		steady: max(steadyMemory, steadyBoots*boot),
	}
	if r.Calls > 0 {
		drawn.calls = max(1, uint64(float64(r.Calls)*part))
	}
	return drawn
}

// wear is the use of one process so far.
type wear struct {
	calls  uint64        // served by it
	age    time.Duration // since its first readiness
	memory int64         // resident bytes of its group; 0 if not known
}

// due decides whether a process has reached one of its own limits.
func (l limits) due(w wear) (Reason, bool) {
	switch {
	case l.calls > 0 && w.calls >= l.calls:
		return ReasonCalls, true
	case l.age > 0 && w.age >= l.age:
		return ReasonAge, true
	case l.heavy(w) && w.age >= l.steady:
		return ReasonMemory, true
	}
	return 0, false
}

// heavy reports whether a process is over its memory limit, at any age.
func (l limits) heavy(w wear) bool { return l.memory > 0 && w.memory >= l.memory }

// crowded reports whether a control group with used bytes is too full. A limit of 0
// means no limit.
func (r Recycle) crowded(used, limit int64) bool {
	return r.Memory.Percent > 0 && limit > 0 && float64(used) >= float64(r.Memory.Percent)/100*float64(limit)
}

// candidate is one of the workers of which a full control group loses one.
type candidate struct {
	limits limits
	wear   wear
}

// largest returns the index of the worker with the most memory, whose end frees most. It
// returns -1 if no memory is known, or if this worker is too young to be replaced for
// its memory: the end of a smaller one would not help.
func largest(of []candidate) int {
	found := -1
	for i, c := range of {
		if c.wear.memory > 0 && (found < 0 || c.wear.memory > of[found].wear.memory) {
			found = i
		}
	}
	if found >= 0 && of[found].wear.age < of[found].limits.steady {
		return -1
	}
	return found
}

// odometer holds the start values from which the wear of one process is computed. It is
// made when the process is ready first, and never changed.
type odometer struct {
	group   int
	readyAt time.Time
	boot    time.Duration
	served  uint64  // calls of the place before the process
	chance  float64 // for its limits, 0 to 1
}

func newOdometer(l *child) *odometer {
	return &odometer{
		group: int(l.group), readyAt: l.readyAt, boot: l.readyAt.Sub(l.began),
		served: l.servedBefore, chance: rand.Float64(),
	}
}

// read returns the limits and the wear of a process now. served counts the calls of its
// place; memory is 0 if it is not known.
func (o *odometer) read(r Recycle, served uint64, memory int64, now time.Time) candidate {
	return candidate{
		limits: r.draw(o.boot, o.chance),
		wear:   wear{calls: served - min(o.served, served), age: now.Sub(o.readyAt), memory: memory},
	}
}

// recycling is what the foreman remembers of recycling.
type recycling struct {
	after    time.Time     // no worker is recycled before
	pause    time.Duration // the last one; 0 after a success
	replaced time.Time     // when the last replacement ended, for whatever reason
	warned   map[int]bool  // groups that the log has reported as too heavy from the start
}

// failed postpones recycling after a replacement that failed.
func (r *recycling) failed(now time.Time) {
	r.pause = min(max(recyclePause, 2*r.pause), recyclePauseMax)
	r.after = now.Add(r.pause)
}

// recycle begins to replace one worker that has reached a limit, if no other replacement
// is under way.
func (f *foreman) recycle(p plan, places []place) {
	now, r := time.Now(), f.s.settings().Recycle
	if r == (Recycle{}) || f.frozen || f.op != nil || now.Before(f.recycling.after) || now.Sub(f.recycling.replaced) < recycleGap || !p.settled(places) {
		return
	}
	weights := f.s.weights.Load()
	var numbers []int
	var candidates []candidate
	for _, s := range places {
		w := f.s.workerAt(s.number)
		o := w.odometer.Load()
		if !s.ready || o == nil {
			continue
		}
		c := o.read(r, w.activity().Served, weights.of(o.group), now)
		if reason, due := c.limits.due(c.wear); due {
			f.replace(s.number, reason, c.wear)
			return
		}
		f.warnOfWeight(w, o.group, c)
		numbers, candidates = append(numbers, s.number), append(candidates, c)
	}
	if !weights.crowd(r, f.recycling.replaced) {
		return
	}
	if i := largest(candidates); i >= 0 {
		f.replace(numbers[i], ReasonCgroupMemory, candidates[i].wear)
	}
}

// replace begins to replace the worker of one place.
func (f *foreman) replace(number int, reason Reason, w wear) {
	f.s.workerAt(number).log.Info("worker is recycled", "reason", reason.String(), "calls", w.calls,
		"age", w.age.Round(time.Second).String(), "memory", w.memory)
	f.begin(&operation{reason: reason, only: number, version: f.good})
	f.s.wake()
}

// warnOfWeight warns, once for each process, of a process that is over its memory limit
// and too young to be replaced for it.
func (f *foreman) warnOfWeight(w *worker, group int, c candidate) {
	if !c.limits.heavy(c.wear) || f.recycling.warned[group] {
		return
	}
	if f.recycling.warned == nil || len(f.recycling.warned) > maxPlaces {
		f.recycling.warned = make(map[int]bool)
	}
	f.recycling.warned[group] = true
	w.log.Warn("worker is above the limit of memory soon after its start; a fresh one will hardly be below it", "pid", group,
		"memory", c.wear.memory, "limit", c.limits.memory, "not_recycled_before", c.limits.steady.String())
}

// recycled takes in how the replacement of a worker ended.
func (f *foreman) recycled(reason Reason, err error) {
	f.recycling.replaced = time.Now()
	time.AfterFunc(recycleGap, f.s.wake)
	switch {
	case reason < ReasonCalls || errors.Is(err, ErrTakenOver) || errors.Is(err, process.ErrStopping):
	case err == nil:
		f.recycling.pause = 0
	default:
		f.recycling.failed(time.Now())
		f.s.options.Logger.Warn("recycling postponed", "for", f.recycling.pause.String())
	}
}
