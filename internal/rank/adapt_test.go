package rank

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// A connection that is lost with all its calls halves the limit, not more.
func TestAdaptLostConnection(t *testing.T) {
	t.Parallel()
	a := newAdaptive(1, 100, 200, 0)
	for others := 99; others >= 0; others-- {
		a.refused(others, time.Second+time.Duration(100-others)*time.Microsecond)
	}
	testkit.Want(t, a.allowed >= 50 && a.why == adaptRefused, "%d calls allowed (%v)", a.allowed, a.why)
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
	testkit.Want(t, a.limit == limit && a.patience <= probeEvery && a.alarm <= probeEvery,
		"limit %d after %d, next probes after %v and %v", a.limit, limit, a.alarm, a.patience)
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
	testkit.Want(t, a.window.calls == 0, "%d calls counted", a.window.calls)
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
			testkit.Need(t, a.limit >= least && a.limit <= most && a.allowed >= least && a.allowed <= a.limit,
				"%d to %d: %d allowed of %d", least, most, a.allowed, a.limit)
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
			testkit.Want(t, e.limit == test.want && e.adapt.allowed == test.want,
				"others have %v: begins with %d (%d allowed), want %d", test.found, e.limit, e.adapt.allowed, test.want)
			r.SetReady(e, false, 0, nil)
		}
	}
}
