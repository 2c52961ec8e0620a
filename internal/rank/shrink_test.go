package rank

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"
)

// threads is a worker with a pool of threads that refuses a call when none is
// free, a shrink that watches it, and callers who keep all its slots in use but
// for the pauses of R1.
type threads struct {
	shrink

	have     func(now time.Duration) int // threads
	lateFree time.Duration               // by how much later a thread is free than its answer says
	service  law

	endpoint Endpoint // for the pauses
	random   *rand.Rand
	inFlight int
	busy     ends // threads, by when they are free
	events   ends // what happens to calls; work is 1 for a refusal, 2 for the end of a pause
	paused   int
	refusals int
	lowest   int
}

// run lets callers and worker go on from one instant to another.
func (w *threads) run(from, to time.Duration) {
	w.lowest = w.left
	for now := from; now < to; {
		for w.inFlight+w.paused < w.left {
			w.send(now)
		}
		e := heap.Pop(&w.events).(end)
		now = e.at
		w.happen(e)
		w.lowest = min(w.lowest, w.left)
	}
}

func (w *threads) send(now time.Duration) {
	for len(w.busy) > 0 && w.busy[0].at <= now {
		heap.Pop(&w.busy)
	}
	w.inFlight++
	if len(w.busy) >= w.have(now) {
		heap.Push(&w.events, end{at: now + ms/5, work: 1})
		return
	}
	done := now + w.service(w.random)
	heap.Push(&w.busy, end{at: done + w.lateFree})
	heap.Push(&w.events, end{at: done})
}

func (w *threads) happen(e end) {
	switch e.work {
	case 0:
		w.endpoint.refusals = 0
		w.inFlight--
		w.released(e.at)
	case 1:
		w.inFlight--
		w.refusals++
		w.refused(w.inFlight, e.at)
		w.paused++
		heap.Push(&w.events, end{at: e.at + w.endpoint.refuse(), work: 2})
	case 2:
		w.paused--
	}
}

func newThreads(slots, have int, service law) *threads {
	return &threads{
		shrink: newShrink(slots), service: service, random: rand.New(rand.NewPCG(1, 1)),
		have: func(time.Duration) int { return have },
	}
}

// R1: a worker that has fewer threads than slots loses slots until it refuses no
// more, whatever its calls are like.
func TestShrinksToWhatTheWorkerTakes(t *testing.T) {
	for _, tc := range []struct {
		name    string
		service law
		within  time.Duration
	}{
		{"short calls", exponential(10 * ms), 10 * time.Second},
		{"calls", exponential(50 * ms), 2 * time.Second},
		{"constant calls", always(50 * ms), 2 * time.Second},
		{"long calls", exponential(5 * time.Second), 5 * time.Second},
	} {
		for have := 1; have < 5; have++ {
			w := newThreads(5, have, tc.service)
			w.run(0, tc.within)
			if w.left != have {
				t.Errorf("%s, %d threads: %d slots left after %v", tc.name, have, w.left, tc.within)
			}
			before := w.refusals
			w.run(tc.within, tc.within+quietFirst-2*time.Second)
			if n := w.refusals - before; n > 150 {
				t.Errorf("%s, %d threads: %d refusals afterwards", tc.name, have, n)
			}
		}
	}
}

// R1: a thread that is free half a millisecond after its answer, as Ruby's is,
// costs no slot, nor does one that takes eight times as long.
func TestLateThreadsCostNoSlot(t *testing.T) {
	for _, late := range []time.Duration{ms / 2, 4 * ms} {
		for _, service := range []law{exponential(2 * ms), always(10 * ms), exponential(100 * ms)} {
			for _, slots := range []int{1, 2, 5, 8} {
				w := newThreads(slots, slots, service)
				w.lateFree = late
				w.run(0, 10*time.Second)
				if w.lowest < slots {
					t.Errorf("%v late: %d of %d slots left at worst", late, w.lowest, slots)
				}
				if w.refusals == 0 {
					t.Errorf("%v late, %d slots: no refusal, the test shows nothing", late, slots)
				}
			}
		}
	}
}

// A connection that breaks refuses all its calls at once; a worker that has gone
// refuses each.
func TestLostConnectionCostsNoSlot(t *testing.T) {
	s := newShrink(20)
	now := time.Minute
	for others := 19; others >= 0; others-- {
		s.refused(others, now)
		now += 10 * time.Microsecond
	}
	for range 100 {
		s.refused(0, now)
		now += 10 * ms
	}
	if s.left != 20 {
		t.Errorf("%d slots left", s.left)
	}
}

// Slots come back one by one, each after 10 s without a refusal, once the worker
// has its threads again.
func TestSlotsComeBack(t *testing.T) {
	w := newThreads(5, 2, exponential(20*ms))
	w.run(0, 5*time.Second)
	if w.left != 2 {
		t.Fatalf("%d slots left, want 2", w.left)
	}
	w.have = func(time.Duration) int { return 5 }
	for want := 3; want <= 5; want++ {
		grown := w.quietAt
		w.run(grown-time.Second, grown-100*ms)
		if w.left != want-1 {
			t.Errorf("%d slots before a quiet spell is over, want %d", w.left, want-1)
		}
		w.run(grown-100*ms, grown+time.Second)
		if w.left != want {
			t.Errorf("%d slots, want %d", w.left, want)
		}
	}
}

// A try in vain costs a few refusals, and the next one comes after twice the time,
// at most 5 minutes.
func TestTriesInVainBecomeRare(t *testing.T) {
	w := newThreads(5, 3, exponential(20*ms))
	w.run(0, 3*time.Second)
	from := 3 * time.Second
	for _, quiet := range []int{20, 40, 80, 160, 300, 300} {
		before := w.refusals
		w.run(from, w.quietAt+3*time.Second)
		from = w.quietAt - w.quiet + 3*time.Second
		if want := time.Duration(quiet) * time.Second; w.quiet != want || w.left != 3 {
			t.Errorf("quiet for %v with %d slots, want %v with 3", w.quiet, w.left, want)
		}
		if n := w.refusals - before; n > 80 {
			t.Errorf("%d refusals for a try", n)
		}
	}
}

// On a busy machine threads are later than anything explains now and then. Few
// such refusals among many answers cost no slot.
func TestRareRefusalsCostNoSlot(t *testing.T) {
	s := newShrink(5)
	now := time.Duration(0)
	for i := range 100_000 {
		now += 10 * ms
		if i%10 == 0 { // one in ten, and none is explained
			s.refused(3, now)
			continue
		}
		s.released(now)
	}
	if s.left != 5 {
		t.Errorf("%d of 5 slots left", s.left)
	}
}
