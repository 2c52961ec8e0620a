package shard

import (
	"math/rand/v2"
	"testing"
	"time"
)

// alarm is a timer of the model: when it is due, and when it rang.
type alarm struct {
	Timer
	due  time.Duration // 0: not set
	rang time.Duration
	then func(now time.Duration)
}

// Expired implements Expirer.
func (a *alarm) Expired(_ *Timer, now time.Duration) {
	a.rang, a.due = now, 0
	if a.then != nil {
		a.then(now)
	}
}

func newAlarms(n int) []*alarm {
	all := make([]*alarm, n)
	for i := range all {
		all[i] = &alarm{}
		all[i].Owner = all[i]
	}
	return all
}

// farOff draws a delay: most are short, some beyond each level of the wheel.
func farOff(rnd *rand.Rand) time.Duration {
	return time.Duration(rnd.Int64N(1 << (12 + rnd.IntN(35)))) // up to 19 hours
}

// The wheel against a list: a timer rings in the first look at or after its
// time, rounded up to the tick, never earlier, and once; next is never late.
func TestWheelAgainstAModel(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 16))
		var w wheel
		var now time.Duration
		alarms := newAlarms(40)
		for range 400 {
			a := alarms[rnd.IntN(len(alarms))]
			switch rnd.IntN(5) {
			case 0, 1, 2:
				a.due = now + farOff(rnd)
				w.set(&a.Timer, a.due)
			case 3:
				w.stop(&a.Timer)
				a.due = 0
			}
			now += advanceBy(rnd, &w, now)
			w.advance(now)
			checkAlarms(t, seed, &w, alarms, now)
		}
	}
}

// advanceBy draws the time to the next look: exactly when the wheel asks for
// it, or before.
func advanceBy(rnd *rand.Rand, w *wheel, now time.Duration) time.Duration {
	next := w.next()
	if rnd.IntN(2) == 0 || next <= now {
		return farOff(rnd) / 1000
	}
	return next - now
}

func checkAlarms(t *testing.T, seed uint64, w *wheel, alarms []*alarm, now time.Duration) {
	t.Helper()
	set := 0
	first := time.Duration(1 << 62)
	for i, a := range alarms {
		if a.Set() != (a.due != 0) {
			t.Fatalf("seed %d: timer %d: set %t at %v, due %v", seed, i, a.Set(), now, a.due)
		}
		if a.due == 0 {
			continue
		}
		set++
		rings := (a.due + tick - 1).Truncate(tick)
		if rings <= now.Truncate(tick) && rings > time.Duration(w.now)*tick {
			t.Fatalf("seed %d: timer %d, due %v, has not rung at %v", seed, i, a.due, now)
		}
		first = min(first, max(rings, time.Duration(w.now+1)*tick))
	}
	if set != w.count {
		t.Fatalf("seed %d: %d timers are counted, %d are set", seed, w.count, set)
	}
	if next := w.next(); set > 0 && (next > first || next <= now-tick) || set == 0 && next != 0 {
		t.Fatalf("seed %d: next look at %v, now %v, first timer at %v", seed, next, now, first)
	}
}

// Looked at whenever it asks for it, the wheel tells every timer within its own
// tick, however far ahead it was.
func TestWheelIsExact(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 17))
		var w wheel
		w.advance(farOff(rnd))
		start := time.Duration(w.now) * tick
		alarms := newAlarms(30)
		due := map[*alarm]time.Duration{}
		for _, a := range alarms {
			a.due = start + 1 + farOff(rnd)
			due[a] = a.due
			w.set(&a.Timer, a.due)
		}
		looks := 0
		for w.count > 0 {
			w.advance(w.next())
			if looks++; looks > 30*(3+10) { // each level once, the span some times
				t.Fatalf("seed %d: looked at %d times", seed, looks)
			}
		}
		for i, a := range alarms {
			if late := a.rang - due[a]; late < 0 || late >= tick {
				t.Fatalf("seed %d: timer %d, due %v, rang %v late", seed, i, due[a], late)
			}
		}
	}
}

// A handler may stop, move and set timers, its own too, also those of the same
// tick.
func TestWheelChangedByHandlers(t *testing.T) {
	var w wheel
	a := newAlarms(4)
	for _, x := range a {
		x.due = time.Second
		w.set(&x.Timer, time.Second)
	}
	told := 0
	for _, x := range a {
		x.then = func(now time.Duration) {
			told++
			for _, other := range a {
				if other != x {
					w.stop(&other.Timer)
				}
			}
			if told < 5 {
				w.set(&x.Timer, now-time.Hour) // in the past: the next tick
			}
		}
	}
	w.advance(2 * time.Second)
	if told != 5 || w.count != 0 {
		t.Errorf("told %d times, %d timers are left", told, w.count)
	}
}

// A wheel that slept for months with one timer is not gone through tick by
// tick: that would hold the shard's lock for long.
func TestWheelSleepsLong(t *testing.T) {
	var w wheel
	a := newAlarms(1)[0]
	a.due = 2 * time.Hour
	w.set(&a.Timer, a.due)
	began := time.Now()
	w.advance(2000 * time.Hour)
	if a.rang == 0 {
		t.Error("the timer has not rung")
	}
	w.set(&a.Timer, 10_000*time.Hour)
	w.advance(9_999 * time.Hour)
	if a.rang != 2000*time.Hour {
		t.Error("the timer has rung early")
	}
	// Tick by tick it would be 40 billion steps.
	if spent := time.Since(began); spent > 10*time.Second {
		t.Errorf("it took %v", spent)
	}
}

// Setting, moving and stopping a timer allocates nothing.
func TestWheelAllocatesNothing(t *testing.T) {
	var w wheel
	a := newAlarms(1)[0]
	now := time.Duration(0)
	if n := testing.AllocsPerRun(1000, func() {
		now += 3 * time.Millisecond
		w.set(&a.Timer, now+time.Minute)
		w.set(&a.Timer, now+time.Second)
		w.stop(&a.Timer)
		w.set(&a.Timer, now+time.Millisecond)
		w.advance(now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
