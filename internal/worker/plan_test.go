package worker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// world is a set of places under a plan, with processes that take as many steps
// as they like to boot, to crash and to leave.
type world struct {
	t      *testing.T
	random *rand.Rand
	plan   plan
	places []place
	last   uint64
	first  uint64 // occupancies of the replacement under way; 0: none is
	crash  float64
	most   int // processes that there may be: above it only after scaling down
}

// step does what the plan says and lets one thing happen.
func (w *world) step() {
	w.mark()
	before := census(w.places)
	due := w.plan.next(w.places)
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
	for i := range w.places {
		s := &w.places[i]
		s.outdated = w.first != 0 && s.occupancy != 0 && s.occupancy < w.first
		s.isNew = w.first != 0 && s.occupancy >= w.first
	}
}

func (w *world) start(number int) {
	for len(w.places) <= number {
		w.places = append(w.places, place{number: len(w.places)})
	}
	testkit.Need(w.t, w.places[number].occupancy == 0, "place %d is started twice: %+v", number, w.places)
	w.last++
	w.places[number] = place{number: number, occupancy: w.last, isNew: w.first != 0}
}

func (w *world) retire(number int) {
	s := w.places[number]
	testkit.Need(w.t, s.occupancy != 0 && !s.retiring, "place %d is retired, which has nobody to leave: %+v", number, w.places)
	w.places[number].retiring, w.places[number].ready = true, false
}

// check holds what the plan promises.
func (w *world) check(before count, due steps) {
	w.t.Helper()
	now := census(w.places)
	w.most = max(min(w.most, before.occupied), w.plan.wanted+w.plan.surge)
	testkit.Need(w.t, now.occupied <= w.most,
		"%d processes, %d wanted and %d more allowed: %+v", now.occupied, w.plan.wanted, w.plan.surge, w.places)
	testkit.Need(w.t, len(due.retire) == 0 || now.leaving <= max(w.plan.draining, before.leaving),
		"%d leave at a time, %d may: %+v", now.leaving, w.plan.draining, w.places)
	testkit.Need(w.t, now.ready >= before.ready || now.ready >= min(w.plan.minReady, w.plan.wanted),
		"%d are ready, %d must stay: %+v", now.ready, w.plan.minReady, w.places)
}

// happen has one process boot, crash, come back or end.
func (w *world) happen() {
	if len(w.places) == 0 {
		return
	}
	s := &w.places[w.random.IntN(len(w.places))]
	switch {
	case s.occupancy == 0:
	case s.retiring:
		*s = place{number: s.number}
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
		if w.plan.settled(w.places) && (w.first == 0 || !slices.ContainsFunc(w.places, func(s place) bool { return s.outdated })) {
			w.first = 0
			return
		}
		w.step()
	}
	w.t.Fatalf("%s never ends: %+v %+v", what, w.plan, w.places)
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

// What to start and whom to retire, case by case.
func TestPlanSteps(t *testing.T) {
	ready := func(number int) place { return place{number: number, occupancy: uint64(number + 1), ready: true} }
	old := func(number int) place { s := ready(number); s.outdated = true; return s }
	fresh := func(number int) place {
		return place{number: number, occupancy: 90 + uint64(number), isNew: true, ready: true}
	}
	booting := func(s place) place { s.ready = false; return s }
	leaving := func(s place) place { s.ready, s.retiring = false, true; return s }
	lost := func(s place) place { s.ready, s.lost = false, true; return s }
	vacant := func(number int) place { return place{number: number} }
	three := plan{wanted: 3, surge: 1, draining: 1, minReady: 1}
	for _, test := range []struct {
		name          string
		plan          plan
		places        []place
		start, retire []int
	}{
		{"from nothing", three, nil, []int{0, 1, 2}, nil},
		{"all is well", three, []place{ready(0), ready(1), ready(2)}, nil, nil},
		{"a roll begins with a spare", three, []place{old(0), old(1), old(2)}, []int{3}, nil},
		{"which is waited for", three, []place{old(0), old(1), old(2), booting(fresh(3))}, nil, nil},
		{"then the first leaves", three, []place{old(0), old(1), old(2), fresh(3)}, nil, []int{0}},
		{"and is waited for", three, []place{leaving(old(0)), old(1), old(2), fresh(3)}, nil, nil},
		{"its place is used again", three, []place{vacant(0), old(1), old(2), fresh(3)}, []int{0}, nil},
		{"who crashed may come back before a new one has been ready", three, []place{old(0), lost(old(1)), old(2), booting(fresh(3))}, nil, nil},
		{"then who does not serve goes first", three, []place{old(0), booting(old(1)), old(2), fresh(3)}, nil, []int{1}},
		{"who is lost goes without a spare", plan{wanted: 3, surge: 2, draining: 2}, []place{old(0), lost(old(1)), old(2), fresh(3), booting(fresh(4))}, nil, []int{1}},
		{"up", plan{wanted: 5, surge: 1, draining: 1}, []place{ready(0), ready(1), ready(2)}, []int{3, 4}, nil},
		{"down: one at a time, the highest", plan{wanted: 1, surge: 1, draining: 1}, []place{ready(0), ready(1), ready(2)}, nil, []int{2}},
		{"down: two at a time", plan{wanted: 1, surge: 1, draining: 2}, []place{ready(0), ready(1), ready(2)}, nil, []int{2, 1}},
		{"down: who does not serve first", plan{wanted: 2, surge: 1, draining: 1}, []place{booting(ready(0)), ready(1), ready(2)}, nil, []int{0}},
		{"min_ready stays", plan{wanted: 2, surge: 1, draining: 2, minReady: 2}, []place{ready(0), ready(1), ready(2), booting(ready(3))}, nil, []int{3, 2}},
		{"without a surge one leaves first", plan{wanted: 3, draining: 1, minReady: 2}, []place{old(0), old(1), old(2)}, nil, []int{0}},
		{"also if all were to stay ready", plan{wanted: 3, draining: 1, minReady: 3}, []place{old(0), old(1), old(2)}, nil, []int{0}},
		{"and its place is filled", plan{wanted: 3, draining: 1, minReady: 2}, []place{vacant(0), old(1), old(2)}, []int{0}, nil},
		{"before the next leaves", plan{wanted: 3, draining: 1, minReady: 2}, []place{booting(fresh(0)), old(1), old(2)}, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := test.plan.next(test.places)
			testkit.Want(t, slices.Equal(got.start, test.start) && slices.Equal(got.retire, test.retire),
				"start %v, retire %v; want %v, %v", got.start, got.retire, test.start, test.retire)
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
		testkit.Want(t, took <= limit,
			"seed %d: %+v, boots of %d and drains of %d: the roll took %d, at most %d are promised", seed, p, boot, leave, took, limit)
	}
}

// rollFor rolls ready workers under a plan, and returns how long that takes if
// boots and drains take so long.
func rollFor(t *testing.T, p plan, boot, leave func() int) (now int) {
	t.Helper()
	w := &world{t: t, plan: p, most: 1 << 20}
	for number := range p.wanted {
		w.start(number)
		w.places[number].ready = true
	}
	w.first = w.last + 1
	due := make(map[uint64]int) // when an occupancy is ready, or gone
	for ; now < 100_000; now++ {
		for i, s := range w.places {
			switch {
			case s.occupancy == 0 || due[s.occupancy] != now || now == 0:
			case s.retiring:
				w.places[i] = place{number: i}
			default:
				w.places[i].ready = true
			}
		}
		w.mark()
		if w.plan.settled(w.places) {
			return now
		}
		steps := w.plan.next(w.places)
		for _, number := range steps.retire {
			w.retire(number)
			due[w.places[number].occupancy] = now + leave()
		}
		for _, number := range steps.start {
			w.start(number)
			due[w.places[number].occupancy] = now + boot()
		}
	}
	t.Fatalf("the roll never ends: %+v %+v", w.plan, w.places)
	return now
}

// Calls need not wait only while every place that is taken is in a crash loop.
func TestOutage(t *testing.T) {
	looping, booting, vacant := place{occupancy: 1, lost: true, looping: true}, place{occupancy: 2}, place{}
	for _, test := range []struct {
		places []place
		want   bool
	}{
		{nil, false},
		{[]place{vacant}, false},
		{[]place{looping}, true},
		{[]place{looping, vacant, looping}, true},
		{[]place{looping, booting}, false},
		{[]place{looping, {occupancy: 3, lost: true}}, false},
		{[]place{looping, {occupancy: 3, ready: true}}, false},
	} {
		testkit.Equal(t, outage(test.places), test.want, "%+v", test.places)
	}
}
