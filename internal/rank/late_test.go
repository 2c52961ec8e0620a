package rank

import (
	"testing"
	"time"
)

// R1: a slot waits as long after its answer as a thread was late before. A refusal
// of a full endpoint makes it longer, one with slots to spare does not, and all
// refusals of one burst are one lesson.
func TestSlotsWaitForLateThreads(t *testing.T) {
	r, e := newRank(t, 10, 2)
	r.SetRefuses(e[0], true)
	both := []*caller{newCaller(0), newCaller(0)}
	now := time.Second
	run := func(calls []*caller, o Outcome, takes time.Duration) {
		t.Helper()
		for _, c := range calls {
			c.acquire(t, r, now, Granted)
		}
		now += takes
		for _, c := range calls {
			c.release(r, o, now)
		}
	}
	rest := func(want time.Duration) {
		t.Helper()
		_, next := tick(r, now)
		if next != 0 {
			next -= now
		}
		if next != want {
			t.Fatalf("the slots wait for %v, want %v", next, want)
		}
		now += want + time.Microsecond
		tick(r, now)
	}
	run(both[:1], MaybeRefused, ms)
	rest(0) // it had a slot to spare
	run(both, OK, 20*ms)
	rest(0)
	run(both, MaybeRefused, ms/2)
	rest(ms / 2)
	run(both, OK, 20*ms)
	rest(ms/2 - ms/2/lateForgotten)
	run(both, RefusedByWorker, ms/2)
	if by := e[0].lateness.by; by < 7*ms/10 || by > 3*ms/4 {
		t.Errorf("slots wait for %v after another burst, want half as long again", by)
	}
	if n := e[0].shrink.left; n != 2 {
		t.Errorf("%d slots are left of 2", n)
	}
}

// What is taken back does not make slots wait for longer: not where answers have told
// since that they need not, nor where refusals tell nothing any more.
func TestUnlearningNeverAdds(t *testing.T) {
	r, e := newRank(t, 10, 2)
	x := e[0]
	r.SetRefuses(x, true)
	x.lateness = lateness{by: ms, before: 4 * ms}
	if x.lateness.unlearn(); x.lateness.by != ms {
		t.Errorf("slots wait for %v, want 1ms", x.lateness.by)
	}
	r.SetRefuses(x, false)
	if r.unlearnRefusals(); x.lateness.by != 0 {
		t.Errorf("slots of a worker that does not refuse wait for %v", x.lateness.by)
	}
}

// One call in thousands is refused in the long run, by a worker whose threads are
// late by a constant time.
func TestLatenessSettles(t *testing.T) {
	var l lateness
	late, refused := 3*ms/2, 0
	const calls = 100_000
	for now := time.Second; now < time.Second+calls*ms; now += ms {
		if l.by < late {
			refused++
			l.refused(now, now+ms/2)
			continue
		}
		l.answered(10*ms, true)
	}
	if refused > calls/5000 || l.by > 2*late {
		t.Errorf("%d of %d calls refused, slots wait for %v; want at most %d and %v", refused, calls, l.by, calls/5000, 2*late)
	}
}

// A process that takes over, and one in a new place, begin with what is known.
func TestLatenessIsHandedOn(t *testing.T) {
	r, e := newRank(t, 10, 2, 2)
	for _, x := range e {
		r.SetRefuses(x, true)
	}
	e[0].lateness.by = 2 * ms
	for _, x := range e {
		r.SetReady(x, false, 0, nil)
		r.SetReady(x, true, 0, nil)
		if x.lateness.by != 2*ms {
			t.Errorf("%s begins with %v, want 2ms", x.Name(), x.lateness.by)
		}
	}
}
