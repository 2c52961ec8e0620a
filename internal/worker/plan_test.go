package worker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// world is a set of places under a plan, with processes that take as many steps
// as they like to boot, to crash and to leave.
type world struct {
	t      *testing.T
	random *rand.Rand
	plan   plan
	seats  []seat
	last   uint64
	first  uint64 // tenures of the replacement under way; 0: none is
	crash  float64
	most   int // processes that there may be: above it only after scaling down
}

// step does what the plan says and lets one thing happen.
func (w *world) step() {
	w.mark()
	before := census(w.seats)
	due := w.plan.next(w.seats)
	for _, number := range due.retire {
		w.retire(number)
	}
	for _, number := range due.start {
		w.start(number)
	}
	w.check(before, due)
	w.happen()
}

func (w *world) mark() {
	for i := range w.seats {
		s := &w.seats[i]
		s.stale = w.first != 0 && s.tenure != 0 && s.tenure < w.first
		s.young = w.first != 0 && s.tenure >= w.first
	}
}

func (w *world) start(number int) {
	for len(w.seats) <= number {
		w.seats = append(w.seats, seat{number: len(w.seats)})
	}
	if w.seats[number].tenure != 0 {
		w.t.Fatalf("place %d is started twice: %+v", number, w.seats)
	}
	w.last++
	w.seats[number] = seat{number: number, tenure: w.last, young: w.first != 0}
}

func (w *world) retire(number int) {
	if s := w.seats[number]; s.tenure == 0 || s.retiring {
		w.t.Fatalf("place %d is retired, which has nobody to leave: %+v", number, w.seats)
	}
	w.seats[number].retiring, w.seats[number].ready = true, false
}

// check holds what the plan promises.
func (w *world) check(before count, due steps) {
	w.t.Helper()
	now := census(w.seats)
	w.most = max(min(w.most, before.occupied), w.plan.wanted+w.plan.surge)
	if now.occupied > w.most {
		w.t.Fatalf("%d processes, %d wanted and %d more allowed: %+v", now.occupied, w.plan.wanted, w.plan.surge, w.seats)
	}
	if len(due.retire) > 0 && now.leaving > max(w.plan.draining, before.leaving) {
		w.t.Fatalf("%d leave at a time, %d may: %+v", now.leaving, w.plan.draining, w.seats)
	}
	if now.ready < before.ready && now.ready < min(w.plan.minReady, w.plan.wanted) {
		w.t.Fatalf("%d are ready, %d must stay: %+v", now.ready, w.plan.minReady, w.seats)
	}
}

// happen has one process boot, crash, come back or end.
func (w *world) happen() {
	if len(w.seats) == 0 {
		return
	}
	s := &w.seats[w.random.IntN(len(w.seats))]
	switch {
	case s.tenure == 0:
	case s.retiring:
		*s = seat{number: s.number}
	case s.ready && w.random.Float64() < w.crash:
		s.ready, s.lost = false, true
	case s.lost:
		s.lost = false
	case !s.ready:
		s.ready = true
	}
}

// settle runs the world until nothing is left to do.
func (w *world) settle(what string) {
	w.t.Helper()
	for range 100_000 {
		w.mark()
		if w.plan.settled(w.seats) && (w.first == 0 || !slices.ContainsFunc(w.seats, func(s seat) bool { return s.stale })) {
			w.first = 0
			return
		}
		w.step()
	}
	w.t.Fatalf("%s never ends: %+v %+v", what, w.plan, w.seats)
}

// The bounds of the plan hold at every moment, whatever crashes meanwhile, and
// every roll and every change of scale comes to its end.
func TestPlanHoldsItsBounds(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 5))
		p := plan{wanted: 1 + random.IntN(6), surge: random.IntN(3), draining: 1 + random.IntN(3)}
		p.minReady = random.IntN(p.wanted + 1)
		if p.surge == 0 {
			p.minReady = min(p.minReady, p.wanted-1)
		}
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			w := &world{t: t, random: random, plan: p, most: 1 << 20}
			w.settle("the start")
			for range 5 {
				w.crash = random.Float64() / 4
				w.first = w.last + 1
				for range random.IntN(30) {
					w.step()
				}
				w.plan.wanted = max(1, w.plan.minReady, 1+random.IntN(8))
				if w.plan.surge == 0 {
					w.plan.wanted = max(w.plan.wanted, w.plan.minReady+1)
				}
				w.settle("the roll")
			}
		})
	}
}

// Without crashes a roll with one spare keeps all wanted workers ready.
func TestRollKeepsEverybodyReady(t *testing.T) {
	w := &world{t: t, random: rand.New(rand.NewPCG(1, 1)), plan: plan{wanted: 4, surge: 1, draining: 1, minReady: 4}, most: 1 << 20}
	for census(w.seats).ready < 4 {
		w.step()
	}
	w.first = w.last + 1
	for range 10_000 {
		w.step()
		if c := census(w.seats); c.ready < 4 {
			t.Fatalf("%d ready: %+v", c.ready, w.seats)
		}
	}
	w.settle("the roll")
	if got := len(w.seats); got != 5 {
		t.Errorf("%d places were used, 5 are enough", got)
	}
}

// What to start and whom to retire, case by case.
func TestPlanSteps(t *testing.T) {
	ready := func(number int) seat { return seat{number: number, tenure: uint64(number + 1), ready: true} }
	old := func(number int) seat { s := ready(number); s.stale = true; return s }
	fresh := func(number int) seat {
		return seat{number: number, tenure: 90 + uint64(number), young: true, ready: true}
	}
	booting := func(s seat) seat { s.ready = false; return s }
	leaving := func(s seat) seat { s.ready, s.retiring = false, true; return s }
	lost := func(s seat) seat { s.ready, s.lost = false, true; return s }
	vacant := func(number int) seat { return seat{number: number} }
	three := plan{wanted: 3, surge: 1, draining: 1, minReady: 1}
	for _, test := range []struct {
		name          string
		plan          plan
		seats         []seat
		start, retire []int
	}{
		{"from nothing", three, nil, []int{0, 1, 2}, nil},
		{"all is well", three, []seat{ready(0), ready(1), ready(2)}, nil, nil},
		{"a roll begins with a spare", three, []seat{old(0), old(1), old(2)}, []int{3}, nil},
		{"which is waited for", three, []seat{old(0), old(1), old(2), booting(fresh(3))}, nil, nil},
		{"then the first leaves", three, []seat{old(0), old(1), old(2), fresh(3)}, nil, []int{0}},
		{"and is waited for", three, []seat{leaving(old(0)), old(1), old(2), fresh(3)}, nil, nil},
		{"its place is used again", three, []seat{vacant(0), old(1), old(2), fresh(3)}, []int{0}, nil},
		{"who crashed may come back before a new one has been ready", three, []seat{old(0), lost(old(1)), old(2), booting(fresh(3))}, nil, nil},
		{"then who does not serve goes first", three, []seat{old(0), booting(old(1)), old(2), fresh(3)}, nil, []int{1}},
		{"who is lost goes without a spare", plan{wanted: 3, surge: 2, draining: 2}, []seat{old(0), lost(old(1)), old(2), fresh(3), booting(fresh(4))}, nil, []int{1}},
		{"up", plan{wanted: 5, surge: 1, draining: 1}, []seat{ready(0), ready(1), ready(2)}, []int{3, 4}, nil},
		{"down: one at a time, the highest", plan{wanted: 1, surge: 1, draining: 1}, []seat{ready(0), ready(1), ready(2)}, nil, []int{2}},
		{"down: two at a time", plan{wanted: 1, surge: 1, draining: 2}, []seat{ready(0), ready(1), ready(2)}, nil, []int{2, 1}},
		{"down: who does not serve first", plan{wanted: 2, surge: 1, draining: 1}, []seat{booting(ready(0)), ready(1), ready(2)}, nil, []int{0}},
		{"min_ready stays", plan{wanted: 2, surge: 1, draining: 2, minReady: 2}, []seat{ready(0), ready(1), ready(2), booting(ready(3))}, nil, []int{3, 2}},
		{"without a surge one leaves first", plan{wanted: 3, draining: 1, minReady: 2}, []seat{old(0), old(1), old(2)}, nil, []int{0}},
		{"also if all were to stay ready", plan{wanted: 3, draining: 1, minReady: 3}, []seat{old(0), old(1), old(2)}, nil, []int{0}},
		{"and its place is filled", plan{wanted: 3, draining: 1, minReady: 2}, []seat{vacant(0), old(1), old(2)}, []int{0}, nil},
		{"before the next leaves", plan{wanted: 3, draining: 1, minReady: 2}, []seat{booting(fresh(0)), old(1), old(2)}, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := test.plan.next(test.seats)
			if !slices.Equal(got.start, test.start) || !slices.Equal(got.retire, test.retire) {
				t.Errorf("start %v, retire %v; want %v, %v", got.start, got.retire, test.start, test.retire)
			}
		})
	}
}

// No roll takes longer than the rounds of atOnce say, however long each process
// takes within its limits.
func TestPlanIsAsFastAsPromised(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 6))
		p := plan{wanted: 1 + random.IntN(7), surge: random.IntN(4), draining: 1 + random.IntN(4)}
		p.minReady = random.IntN(p.wanted + 1)
		boot, leave := 1+random.IntN(50), 1+random.IntN(50)
		took := rollFor(t, p, func() int { return boot - random.IntN(1+random.IntN(boot)) }, func() int { return leave - random.IntN(1+random.IntN(leave)) })
		limit := (p.wanted + p.atOnce() - 1) / p.atOnce() * (boot + leave)
		if took > limit {
			t.Errorf("seed %d: %+v, boots of %d and drains of %d: the roll took %d, at most %d are promised", seed, p, boot, leave, took, limit)
		}
	}
}

// rollFor rolls ready workers under a plan, and returns how long that takes if
// boots and drains take so long.
func rollFor(t *testing.T, p plan, boot, leave func() int) (now int) {
	t.Helper()
	w := &world{t: t, plan: p, most: 1 << 20}
	for number := range p.wanted {
		w.start(number)
		w.seats[number].ready = true
	}
	w.first = w.last + 1
	due := make(map[uint64]int) // when a tenure is ready, or gone
	for ; now < 100_000; now++ {
		for i, s := range w.seats {
			switch {
			case s.tenure == 0 || due[s.tenure] != now || now == 0:
			case s.retiring:
				w.seats[i] = seat{number: i}
			default:
				w.seats[i].ready = true
			}
		}
		w.mark()
		if w.plan.settled(w.seats) {
			return now
		}
		steps := w.plan.next(w.seats)
		for _, number := range steps.retire {
			w.retire(number)
			due[w.seats[number].tenure] = now + leave()
		}
		for _, number := range steps.start {
			w.start(number)
			due[w.seats[number].tenure] = now + boot()
		}
	}
	t.Fatalf("the roll never ends: %+v %+v", w.plan, w.seats)
	return now
}

// Calls need not wait only while every place that is taken is in a crash loop.
func TestOutage(t *testing.T) {
	looping, booting, vacant := seat{tenure: 1, lost: true, looping: true}, seat{tenure: 2}, seat{}
	for _, test := range []struct {
		seats []seat
		want  bool
	}{
		{nil, false},
		{[]seat{vacant}, false},
		{[]seat{looping}, true},
		{[]seat{looping, vacant, looping}, true},
		{[]seat{looping, booting}, false},
		{[]seat{looping, {tenure: 3, lost: true}}, false},
		{[]seat{looping, {tenure: 3, ready: true}}, false},
	} {
		if got := outage(test.seats); got != test.want {
			t.Errorf("%+v: %v", test.seats, got)
		}
	}
}
