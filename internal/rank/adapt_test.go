package rank

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The worker that all of it is about: a call needs 1 ms of the one processor and
// 20 ms of something else.
func serviceOf(cpu, wait law) []work { return []work{{1, cpu, wait}} }

// An adaptive limit does at least 0.95 of what the best fixed limit does, with
// run times of at most 1.5 times that one's. The seeds make the probes come at
// other times, too.
func TestAdaptFindsTheBestLimit(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		works []work
		from  int // second from which on it is measured
		share float64
	}{
		{"constant", serviceOf(always(ms), always(20*ms)), 10, 0.97},
		{"exponential", serviceOf(exponential(ms), exponential(20*ms)), 10, 0.95},
		{"mixed wait", serviceOf(always(ms), mixed), 10, 0.95},
		{"mixed wait, exponential cpu", serviceOf(exponential(ms), mixed), 10, 0.93},
		{"long calls", serviceOf(exponential(10*ms), exponential(500*ms)), 60, 0.85},
		{"short calls", serviceOf(exponential(ms/5), exponential(4*ms)), 10, 0.95},
		{"two methods", []work{
			{0.5, exponential(ms / 5), exponential(ms)}, {0.5, exponential(ms), exponential(99 * ms)},
		}, 20, 0.93},
	} {
		n, best := bestFixed(tc.works, 1, 1)
		for seed := range simulatedSeeds {
			a := (&async{works: tc.works}).run(seed, 100*time.Second)
			got := a.between(tc.from, 100)
			calls, run := got.perSecond/best.perSecond, float64(got.run)/float64(best.run)
			t.Logf("%s: fixed %d does %.0f/s in %v; adaptive %.3f of it, in %.2f of the time, limit at last %d (%v)",
				tc.name, n, best.perSecond, best.run, calls, run, a.limit.limit, a.limit.why)
			if calls < tc.share || run > 1.5 {
				t.Errorf("%s: %.3f of the calls in %.2f of the time, want %v and 1.5", tc.name, calls, run, tc.share)
			}
		}
	}
}

// A worker that waits for something else alone gets all that the bounds allow;
// run times of 95 % exp(10 ms) and 5 % exp(210 ms) do not hold it back.
func TestAdaptGrowsWithoutContention(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]law{"constant": always(20 * ms), "mixed": mixed} {
		for seed := range simulatedSeeds {
			a := (&async{works: serviceOf(always(0), wait)}).run(seed, 20*time.Second)
			if got := a.between(12, 20); got.lowest < 150 {
				t.Errorf("%s: limit fell to %d", name, got.lowest)
			}
		}
	}
}

// A worker that does one call at a time gets few at once: up to three, after a
// minute in which it had to find that out from ten.
func TestAdaptOneAtATime(t *testing.T) {
	t.Parallel()
	for name, cpu := range map[string]law{"constant": always(10 * ms), "exponential": exponential(10 * ms)} {
		_, best := bestFixed(serviceOf(cpu, always(0)), 1, 1)
		for seed := range simulatedSeeds {
			a := (&async{works: serviceOf(cpu, always(0))}).run(seed, 200*time.Second)
			got := a.between(60, 200)
			t.Logf("%s: %.1f/s of %.1f/s in %v", name, got.perSecond, best.perSecond, got.run)
			if got.perSecond < 0.95*best.perSecond || got.run > 35*ms || a.limit.limit > 4 {
				t.Errorf("%s: %.1f/s of %.1f/s in %v, limit %d", name, got.perSecond, best.perSecond, got.run, a.limit.limit)
			}
		}
	}
}

// When the worker's processor does half as much, and when it is itself again,
// the limit follows within seconds.
func TestAdaptFollowsCapacity(t *testing.T) {
	t.Parallel()
	const slowAt, backAt, over = 40, 80, 120
	cpu := func(now time.Duration) float64 {
		if now >= slowAt*time.Second && now < backAt*time.Second {
			return 2
		}
		return 1
	}
	for name, works := range map[string][]work{
		"constant":    serviceOf(always(ms), always(20*ms)),
		"exponential": serviceOf(exponential(ms), exponential(20*ms)),
	} {
		_, best := bestFixed(works, 1, 1)
		_, slow := bestFixed(works, 2, 1)
		for seed := range simulatedSeeds {
			a := (&async{works: works, cpuAt: cpu}).run(seed, over*time.Second)
			// How long until a second is as it should be, and what it is in all from
			// ten seconds on.
			down := a.secondsUntil(slowAt, func(f output) bool { return float64(f.run) < 1.5*float64(slow.run) })
			up := a.secondsUntil(backAt, func(f output) bool { return f.perSecond > 0.9*best.perSecond })
			during, after := a.between(slowAt+10, backAt), a.between(backAt+10, over)
			t.Logf("%s: down after %d s, up after %d s", name, down, up)
			if down > 25 || up > 15 {
				t.Errorf("%s: down after %d s, up after %d s", name, down, up)
			}
			if during.perSecond < 0.9*slow.perSecond || after.perSecond < 0.9*best.perSecond {
				t.Errorf("%s: %.2f and %.2f of the best", name,
					during.perSecond/slow.perSecond, after.perSecond/best.perSecond)
			}
			if float64(during.run) > 1.7*float64(slow.run) || float64(after.run) > 1.5*float64(best.run) {
				t.Errorf("%s: runs of %v and %v, want about %v and %v", name, during.run, after.run, slow.run, best.run)
			}
		}
	}
}

// secondsUntil returns how many seconds after one it is the first time well.
func (a *async) secondsUntil(from int, well func(output) bool) int {
	for s := from; s < len(a.seconds); s++ {
		if well(a.between(s, s+1)) {
			return s - from
		}
	}
	return len(a.seconds)
}

// Under light load the limit makes no difference and does not fall, whatever the
// run times are like; a burst afterwards has all of it.
func TestAdaptLightLoad(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]law{"constant": always(20 * ms), "exponential": exponential(20 * ms), "mixed": mixed} {
		a := (&async{works: serviceOf(exponential(ms), wait), rate: 100}).run(1, 300*time.Second)
		got := a.between(0, 300)
		if got.lowest < 10 {
			t.Errorf("%s: limit fell to %d", name, got.lowest)
		}
		if waited := got.sojourn - got.run; waited > ms/5 {
			t.Errorf("%s: calls waited %v for a slot", name, waited)
		}
	}
}

// Below saturation calls are about as quick as with any number of slots, though
// probes let half of them run now and then.
func TestAdaptOpenLoad(t *testing.T) {
	t.Parallel()
	works := serviceOf(exponential(ms), exponential(20*ms))
	for _, tc := range []struct{ rate, most float64 }{{500, 1.05}, {800, 1.1}, {900, 1.5}} {
		free := (&async{works: works, rate: tc.rate, fixed: 1000}).run(1, 100*time.Second).between(20, 100)
		got := (&async{works: works, rate: tc.rate}).run(1, 100*time.Second).between(20, 100)
		t.Logf("%v/s: %v from arrival to end, without a limit %v", tc.rate, got.sojourn, free.sojourn)
		if float64(got.sojourn) > tc.most*float64(free.sojourn) {
			t.Errorf("%v/s: %v from arrival to end, without a limit %v", tc.rate, got.sojourn, free.sojourn)
		}
	}
}

// Run times that double because of something else, a database, do not count as
// contention: the limit follows the new optimum, which is higher.
func TestAdaptSlowDatabase(t *testing.T) {
	t.Parallel()
	const slowAt, over = 40, 100
	slower := func(now time.Duration) float64 {
		if now >= slowAt*time.Second {
			return 2
		}
		return 1
	}
	for name, works := range map[string][]work{
		"constant":    serviceOf(always(ms), always(20*ms)),
		"exponential": serviceOf(exponential(ms), exponential(20*ms)),
	} {
		_, before := bestFixed(works, 1, 1)
		_, best := bestFixed(works, 1, 2)
		for seed := range simulatedSeeds {
			a := (&async{works: works, waitAt: slower}).run(seed, over*time.Second)
			at := a.secondsUntil(slowAt+1, func(f output) bool { return f.perSecond > 0.9*best.perSecond })
			got := a.between(slowAt+15, over)
			worst := a.between(slowAt, slowAt+15)
			t.Logf("%s: %.2f of the best from 15 s on, %.2f until then, 0.9 after %d s; limit never below %d",
				name, got.perSecond/best.perSecond, worst.perSecond/best.perSecond, at, worst.lowest)
			if got.perSecond < 0.93*best.perSecond || got.run > best.run*3/2 || worst.perSecond < before.perSecond/3 {
				t.Errorf("%s: %.2f of the best in %v, best %v", name, got.perSecond/best.perSecond, got.run, best.run)
			}
		}
	}
}

// A worker that takes eight calls and refuses more is soon asked for eight.
func TestAdaptRefusals(t *testing.T) {
	t.Parallel()
	a := (&async{works: serviceOf(always(ms), always(20*ms)), refuses: 8}).run(1, 30*time.Second)
	got := a.between(5, 30)
	t.Logf("%.0f/s with %d refusals in 25 s", got.perSecond, got.refused)
	if got.perSecond < 0.97*8/0.021 || float64(got.refused) > 0.02*got.perSecond*25 {
		t.Errorf("%.0f/s with %d refusals in 25 s", got.perSecond, got.refused)
	}
	if got.lowest < 5 {
		t.Errorf("limit fell to %d", got.lowest)
	}
}

// A connection that is lost with all its calls halves the limit, not more.
func TestAdaptLostConnection(t *testing.T) {
	t.Parallel()
	a := newAdaptive(1, 100, 200, 0)
	for others := 99; others >= 0; others-- {
		a.refused(others, time.Second+time.Duration(100-others)*time.Microsecond)
	}
	if a.allowed < 50 || a.why != adaptRefused {
		t.Errorf("%d calls allowed (%v)", a.allowed, a.why)
	}
}

// A probe that meets a long spell without calls is no reason to wait long for
// the next one, and its outcome is not compared with what was before.
func TestAdaptAfterASpellWithoutCalls(t *testing.T) {
	t.Parallel()
	a := newAdaptive(1, 40, 200, 0)
	now := time.Duration(0)
	work := func(run time.Duration, until func() bool) {
		t.Helper()
		for begun := now; !until(); {
			if now += ms; now-begun > time.Hour {
				t.Fatal("nothing happens")
			}
			a.finished(run, 20*ms, a.allowed, OK, now)
		}
	}
	work(20*ms, func() bool { return a.calm != 0 })
	work(60*ms, func() bool { return a.probing })
	limit := a.limit
	now += time.Hour
	work(20*ms, func() bool { return !a.probing })
	if a.limit != limit || a.patience > probeEvery || a.alarm > probeEvery {
		t.Errorf("limit %d after %d, next probes after %v and %v", a.limit, limit, a.alarm, a.patience)
	}
}

// Calls whose method is not known, that broke or that were cancelled early tell
// nothing; those cancelled late tell how slow it is.
func TestAdaptWhatTellsNothing(t *testing.T) {
	t.Parallel()
	a := newAdaptive(1, 10, 200, 0)
	for i := range 1000 {
		now := time.Duration(i+1) * ms
		a.finished(20*ms, 0, 10, OK, now)
		a.finished(20*ms, 20*ms, 10, Failed, now)
		a.finished(5*ms, 20*ms, 10, Cancelled, now)
		a.finished(20*ms, 20*ms, 10, NotSent, now)
	}
	if a.window.calls != 0 {
		t.Errorf("%d calls counted", a.window.calls)
	}
	if a.finished(30*ms, 20*ms, 10, Cancelled, 2*time.Second); a.window.calls != 1 {
		t.Error("a call cancelled late does not count")
	}
}

// Whatever calls do, the limit stays within its bounds and something is allowed.
func TestAdaptStaysWithinBounds(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, bound := range [][2]int{{1, 200}, {1, 1}, {5, 9}, {50, 50}} {
		least, most := bound[0], bound[1]
		a := newAdaptive(least, (least+most)/2, most, 0)
		now := time.Duration(0)
		for range 50_000 {
			now += time.Duration(random.ExpFloat64() * random.ExpFloat64() * 10 * float64(ms))
			if random.IntN(100) == 0 {
				a.refused(random.IntN(most+2), now)
			}
			run := time.Duration(random.ExpFloat64() * float64(time.Duration(1)<<random.IntN(40)))
			a.finished(run, time.Duration(random.IntN(1e9)), 1+random.IntN(a.allowed), OK, now)
			if a.limit < least || a.limit > most || a.allowed < least || a.allowed > a.limit {
				t.Fatalf("%d to %d: %d allowed of %d", least, most, a.allowed, a.limit)
			}
		}
	}
}

// What every call costs.
func BenchmarkAdapt(b *testing.B) {
	a := newAdaptive(1, 10, 200, 0)
	now := time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		now += 10 * time.Microsecond
		a.started(a.allowed, now)
		a.finished(20*ms, 21*ms, a.allowed, OK, now)
	}
}

// A worker that takes over a place begins by what was found of the others: with
// half as many slots as the one in the middle, and not with fewer than they began
// with unless that was found to be too many.
func TestBeginsByWhatWasFound(t *testing.T) {
	for _, test := range []struct {
		found []int // limits of others; 0: nothing was measured yet
		want  int
	}{
		{nil, 5},
		{[]int{0, 0}, 5},
		{[]int{40}, 20},
		{[]int{40, 0, 8, 60}, 20},
		{[]int{8, 9}, 5},
		{[]int{3, 2, 30}, 3},
		{[]int{1}, 2},
		{[]int{1000}, 50},
	} {
		r := New(Options{})
		o := EndpointOptions{Slots: 5, Least: 2, Most: 50}
		for _, limit := range test.found {
			other := r.Add("other", o)
			r.SetReady(other, true, 0, nil)
			if limit > 0 {
				other.adapt.limit, other.adapt.calm = limit, 1
			}
		}
		e := r.Add("new", o)
		for range 2 { // the second time as another process
			r.SetReady(e, true, 0, nil)
			if e.limit != test.want || e.adapt.allowed != test.want {
				t.Errorf("others have %v: begins with %d (%d allowed), want %d", test.found, e.limit, e.adapt.allowed, test.want)
			}
			r.SetReady(e, false, 0, nil)
		}
	}
}
