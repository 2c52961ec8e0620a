package whatif

import (
	"context"
	"runtime"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/cabrank/cabrank/lab/internal/goal"
	"github.com/cabrank/cabrank/lab/internal/latency"
)

// Schema names the keys of Answer in JSON and what they mean (docs/lab-what-if.md).
const Schema = "cabrank.lab.what-if/1"

// Answer is what a question came to. In JSON durations are nanoseconds.
type Answer struct {
	Schema string `json:"schema"`
	// Service is what was asked about: a method and its address, or a file. Service,
	// Began and Machine, lines about where it was measured, are for who asks to fill in.
	Service string        `json:"service"`
	Began   time.Time     `json:"began"`
	Machine []string      `json:"machine,omitempty"`
	Rate    float64       `json:"rate"`
	Timeout time.Duration `json:"timeout_ns"`
	Queue   Queue         `json:"queue"`
	// Calls is how many calls of each cell are counted, and Seed draws them.
	Calls int    `json:"calls"`
	Seed  uint64 `json:"seed"`
	// Thresholds are those that were asked for; empty if there are none.
	Thresholds   []string      `json:"thresholds"`
	Calibrations []Calibration `json:"calibrations"`
	// Sizes are the smallest numbers of workers, if there are thresholds: of each
	// number of slots, for each policy.
	Sizes []Size `json:"sizes"`
	// Cells are in the order of slots, workers and policies.
	Cells []Cell `json:"cells"`
}

// Cell is what some workers with some slots would give by one policy.
type Cell struct {
	Slots   int    `json:"slots"`
	Workers int    `json:"workers"`
	Policy  Policy `json:"policy"`
	// Load is the work that comes over what the workers can do.
	Load float64 `json:"load"`
	// Overload says that more comes than can be done, and nothing bounds the wait:
	// there are no figures.
	Overload bool `json:"overload,omitempty"`
	// Due is how many calls were counted.
	Due int64 `json:"due"`
	// Latencies are those of the calls that were answered: p50, p90, p95, p99, p99.9.
	Latencies latency.Summary `json:"latencies"`
	// Parts is how many parts the calls have, each with service times as another
	// measurement might have come to, and PartsHeld in how many the thresholds hold.
	Parts     int `json:"parts"`
	PartsHeld int `json:"parts_held"`
	// Least99 and Most99 are the p99 of the part of the calls where it is smallest,
	// and largest: how much of it is chance.
	Least99 time.Duration `json:"p99_least_ns"`
	Most99  time.Duration `json:"p99_most_ns"`
	// Failed is the share of the calls that got no answer: Shed was refused before a
	// worker had it, of Late the deadline passed or the queue's timeout.
	Failed float64 `json:"failed"`
	Shed   float64 `json:"shed"`
	Late   float64 `json:"late"`
	// Busy is the share of the slots' time in which they run handlers, those of
	// callers who have gone included.
	Busy float64 `json:"busy"`
	// Judgement is what came of the thresholds; nil without.
	Judgement *goal.Judgement `json:"judgement,omitempty"`
}

// holds reports whether all thresholds held.
func (c Cell) holds() bool { return c.Judgement != nil && c.Judgement.Verdict == goal.Held }

// Size is the smallest number of workers that holds the thresholds.
type Size struct {
	Slots  int    `json:"slots"`
	Policy Policy `json:"policy"`
	// Workers is 0 if none of the numbers that were tried holds them.
	Workers int `json:"workers"`
	// Least and Most are the smallest numbers with which they hold in one part of the
	// calls, and in all: how much of it is chance. 0 as above.
	Least int `json:"least"`
	Most  int `json:"most"`
}

// Progress is how far an answer is.
type Progress struct{ Done, All int } // cells

// Ask simulates all cells. told, if given, is called after each, one call at a time.
// When ctx ends, cells that have begun are finished and no more begin.
//
// It takes about a second for each million calls on one core, uses all that the
// program may have, and some 15 MB for each.
//
// Errors: one line on what cannot be asked, and that of ctx.
func (q Question) Ask(ctx context.Context, told func(Progress)) (*Answer, error) {
	q, err := q.complete()
	if err != nil {
		return nil, err
	}
	a := &Answer{
		Schema: Schema, Rate: q.Rate, Timeout: q.Timeout, Queue: q.Queue, Calls: q.Calls, Seed: q.Seed,
		Thresholds: []string{}, Calibrations: q.used(), Sizes: []Size{},
	}
	for _, t := range q.Thresholds {
		if !t.Added() {
			a.Thresholds = append(a.Thresholds, t.String())
		}
	}
	more := map[int][]int{}
	for _, slots := range q.Slots {
		if more[slots] = q.Workers; q.Workers == nil {
			more[slots] = q.useful(slots)
		}
	}
	for len(more) > 0 {
		cells := q.cells(more)
		done := len(a.Cells)
		q.fill(ctx, cells, func(n int) {
			if told != nil {
				told(Progress{Done: done + n, All: done + len(cells)})
			}
		})
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		a.Cells = append(a.Cells, cells...)
		sort.SliceStable(a.Cells, func(i, j int) bool {
			x, y := &a.Cells[i], &a.Cells[j]
			return x.Slots < y.Slots || x.Slots == y.Slots && x.Workers < y.Workers
		})
		more = nil
		if len(q.Thresholds) > 0 {
			a.Sizes = q.sizes(a.Cells)
			if q.Workers == nil {
				more = between(a)
			}
		}
	}
	return a, nil
}

// used are the calibrations that are asked for.
func (q Question) used() (all []Calibration) {
	for _, c := range q.Calibrations {
		if c.Slots == 0 || slices.Contains(q.Slots, c.Slots) {
			all = append(all, c)
		}
	}
	return all
}

// cells are those of numbers of workers, by slots.
func (q Question) cells(workers map[int][]int) (all []Cell) {
	for _, slots := range q.Slots {
		for _, n := range workers[slots] {
			for _, p := range Policies() {
				all = append(all, Cell{Slots: slots, Workers: n, Policy: p})
			}
		}
	}
	return all
}

// between are the numbers of workers in the middle of the gaps below sizes: a smaller
// one may hold, too. None are left when all sizes are exact.
func between(a *Answer) map[int][]int {
	more := map[int][]int{}
	for _, size := range a.Sizes {
		for _, holds := range []int{size.Workers, size.Least, size.Most} {
			below := 0
			for _, c := range a.Cells {
				if c.Slots == size.Slots && c.Workers < holds {
					below = max(below, c.Workers)
				}
			}
			if middle := (below + holds) / 2; middle > below && !slices.Contains(more[size.Slots], middle) {
				more[size.Slots] = append(more[size.Slots], middle)
			}
		}
	}
	return more
}

// fill simulates cells, as many at a time as there are cores.
func (q Question) fill(ctx context.Context, cells []Cell, told func(done int)) {
	next := make(chan *Cell)
	var lock sync.Mutex
	var all sync.WaitGroup
	done := 0
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() { // ends with next
			for cell := range next {
				q.simulate(cell)
				lock.Lock()
				done++
				told(done)
				lock.Unlock()
			}
		})
	}
	for i := range cells {
		if ctx.Err() != nil {
			break
		}
		next <- &cells[i]
	}
	close(next)
	all.Wait()
}

// sizes finds for each number of slots and policy the smallest number of workers that
// holds the thresholds, with all larger ones that were tried.
func (q Question) sizes(cells []Cell) (all []Size) {
	for _, slots := range q.Slots {
		for _, p := range Policies() {
			smallest := func(holds func(Cell) bool) (workers int) {
				for _, c := range slices.Backward(cells) {
					if c.Slots != slots || c.Policy != p {
						continue
					}
					if !holds(c) {
						break
					}
					workers = c.Workers
				}
				return workers
			}
			size := Size{
				Slots: slots, Policy: p, Workers: smallest(Cell.holds),
				Least: smallest(func(c Cell) bool { return c.PartsHeld > 0 }),
				Most:  smallest(func(c Cell) bool { return c.Parts > 0 && c.PartsHeld == c.Parts }),
			}
			all = append(all, size)
		}
	}
	return all
}

// Holds reports whether some number of workers behind Cabrank holds the thresholds.
func (a *Answer) Holds() bool {
	return slices.ContainsFunc(a.Sizes, func(s Size) bool { return s.Policy == Cabrank && s.Workers > 0 })
}
