package scale

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// feed drives a Scaler with counters that grow evenly: a load without chance.
type feed struct {
	t      *testing.T
	scaler *Scaler
	sample Sample
	rate   float64 // calls per second
	run    float64 // seconds per call
	cpu    float64 // CPU seconds per second of a slot
	up     bool    // what is wanted is ready at once
	last   Decision
}

func newFeed(t *testing.T, o Options, wanted int) *feed {
	t.Helper()
	f := &feed{t: t, scaler: New(o, wanted, 1), run: 0.1, up: true}
	f.sample.Boot = 2 * time.Second
	return f
}

// pass lets so much time pass, with a decision every 250 ms.
func (f *feed) pass(d time.Duration) Decision {
	f.t.Helper()
	const tick = 250 * time.Millisecond
	for end := f.sample.Now + d; f.sample.Now < end; {
		f.sample.Now += tick
		calls := f.rate * tick.Seconds()
		f.sample.Arrivals += uint64(calls)
		f.sample.Served += uint64(calls)
		f.sample.SlotTime += time.Duration(calls * f.run * float64(time.Second))
		f.sample.CPU += time.Duration(calls * f.run * f.cpu * float64(time.Second))
		if f.up {
			f.sample.Ready = max(f.scaler.wanted, 1)
			f.sample.Slots = f.sample.Ready
		}
		before := f.last.Wanted
		f.last = f.scaler.Decide(f.sample)
		testkit.Want(f.t, !f.last.Changed || f.last.Words != "",
			"%d to %d workers for %v without a word", before, f.last.Wanted, f.last.Reason)
	}
	return f.last
}

func (f *feed) want(wanted int, reason Reason) {
	f.t.Helper()
	testkit.Want(f.t, f.last.Wanted == wanted && f.last.Reason == reason,
		"%d workers for %v (%q), want %d for %v", f.last.Wanted, f.last.Reason, f.last.Words, wanted, reason)
}

// 40 calls of 0.1 s per second keep 4 slots busy: 4 + 1.5 sqrt(4) are wanted.
func TestSquareRootStaffing(t *testing.T) {
	f := newFeed(t, Options{Min: 1, Max: 20}, 1)
	f.rate = 40
	f.pass(2 * time.Minute)
	f.want(7, Enough)
	testkit.Want(t, f.last.Load >= 3.9 && f.last.Load <= 4.1, "the load is %.2f slots, want 4", f.last.Load)
}

func TestStaff(t *testing.T) {
	for _, test := range []struct{ slots, dispersion, beta, want float64 }{
		{0, 1, 1.5, 0},
		{4, 1, 1.5, 7},
		{4, 3, 1.5, 4 + 1.5*2.8284},
		{4, 1000, 1.5, 10},
		{900, 1, 1.5, 1000},
	} {
		if got := staff(test.slots, test.dispersion, test.beta); got < test.want-0.01 || got > test.want+0.01 {
			t.Errorf("staff(%v, %v, %v) is %.2f, want %.2f", test.slots, test.dispersion, test.beta, got, test.want)
		}
	}
	if got := workers(1e300, 0); got < 1<<20 {
		t.Errorf("an absurd load wants %d workers", got)
	}
}

func TestBoundsOfWorkers(t *testing.T) {
	f := newFeed(t, Options{Min: 2, Max: 5}, 1)
	if f.pass(time.Second); f.last.Wanted != 2 {
		t.Errorf("%d workers at the beginning, at least 2 are to run", f.last.Wanted)
	}
	f.rate = 40
	f.pass(time.Minute)
	f.want(5, Maximum)
	f.scaler.Bound(Options{Min: 1, Max: 3})
	f.pass(250 * time.Millisecond)
	f.want(3, Maximum)
	f.scaler.Bound(Options{Min: 6, Max: 9})
	f.pass(250 * time.Millisecond)
	f.want(6, Minimum)
}

// One worker less at a time, and only after five minutes.
func TestFewerSlowly(t *testing.T) {
	f := newFeed(t, Options{Min: 1, Max: 20}, 1)
	f.rate = 40
	f.pass(2 * time.Minute)
	f.rate = 0
	f.pass(4*time.Minute + 50*time.Second)
	f.want(7, Enough)
	for f.last.Wanted > 1 {
		before, at := f.last.Wanted, f.sample.Now
		for f.last.Wanted == before && f.sample.Now < at+10*time.Minute {
			f.pass(250 * time.Millisecond)
		}
		testkit.Need(t, f.last.Wanted == before-1 && f.last.Reason == LessLoad,
			"from %d to %d workers for %v (%s)", before, f.last.Wanted, f.last.Reason, f.last.Words)
		testkit.Want(t, before >= 7 || f.sample.Now-at >= downEvery,
			"from %d to %d workers after %v", before, f.last.Wanted, f.sample.Now-at)
	}
}

// A change of mind makes the next one slower, up to a bound; a long calm forgets.
func TestHoldDoubles(t *testing.T) {
	var h hold
	h.reset()
	now := time.Hour
	for range 10 {
		h.lowered(now)
		now += time.Minute
		h.raised(now)
	}
	testkit.Want(t, h.length == holdMost, "after ten changes of mind the hold is %v, want %v", h.length, holdMost)
	h.lowered(now)
	h.raised(now + 5*holdMost)
	testkit.Want(t, h.length == holdLeast, "after a long calm the hold is %v, want %v", h.length, holdLeast)
}

func TestHoldRemembersTheLargestNeed(t *testing.T) {
	var h hold
	h.reset()
	h.note(3, 0)
	h.note(8, time.Minute)
	h.note(2, 5*time.Minute)
	testkit.Equal(t, h.most(5*time.Minute), 8, "most")
	testkit.Equal(t, h.most(6*time.Minute+bucket), 2, "after six minutes most")
	h.note(1, 100*time.Hour)
	testkit.Equal(t, h.most(100*time.Hour), 1, "after days most")
}

// Busy workers beyond the CPUs do not help a service that computes; one that waits
// for others gets as many as its load needs.
func TestCPULimits(t *testing.T) {
	f := newFeed(t, Options{Min: 1, Max: 50}, 1)
	f.sample.CPUs, f.cpu, f.rate = 4, 1, 8
	f.pass(time.Minute)
	f.want(3, Enough)
	f.rate = 32
	f.pass(time.Minute)
	f.want(4, CPU)

	waits := newFeed(t, Options{Min: 1, Max: 50}, 1)
	waits.sample.CPUs, waits.cpu, waits.rate = 4, 0.02, 400
	waits.pass(time.Minute)
	waits.want(50, Enough)
}

// While all CPU is used nothing more is started, whatever the slots seem to cost:
// calls that wait for CPU take longer, and would ask for more and more.
func TestFullCPUAsksForNoMore(t *testing.T) {
	f := newFeed(t, Options{Min: 1, Max: 50}, 4)
	f.sample.CPUs, f.cpu, f.rate, f.run = 4, 0.5, 80, 0.1
	f.pass(time.Minute)
	before := f.last.Wanted
	f.run, f.cpu = 1, 0.05 // the same CPU time, ten times as long
	f.pass(5 * time.Minute)
	testkit.Want(t, f.last.Wanted == before && f.last.Reason == CPU, "from %d to %d workers for %v", before, f.last.Wanted, f.last.Reason)
}

// What workers use while they have nothing to do says nothing of calls.
func TestIdleCPUSaysNothing(t *testing.T) {
	f := newFeed(t, Options{Min: 10, Max: 50}, 10)
	f.sample.CPUs, f.cpu, f.rate = 2, 3, 4 // 0.4 slots busy, and 1.2 CPUs
	f.pass(2 * time.Minute)
	f.cpu, f.rate = 0.01, 200
	f.pass(time.Minute)
	f.want(27, Enough)
}

func TestMemoryLimits(t *testing.T) {
	f := newFeed(t, Options{Min: 1, Max: 50}, 2)
	f.up = false
	f.sample.Ready, f.sample.Slots = 2, 2
	f.sample.MemoryLimit, f.sample.MemoryUsed, f.sample.MemoryEach = 1000, 590, 100
	f.rate = 40
	f.pass(time.Minute)
	f.want(5, Memory) // 1000 - 100 - 590 holds three more
	f.sample.Ready, f.sample.MemoryUsed = 5, 950
	f.pass(time.Minute)
	f.want(5, Memory)
}

// A version that dies at every start is no reason for more of it.
func TestWorkersThatDoNotComeUp(t *testing.T) {
	f := newFeed(t, Options{Min: 1, Max: 50}, 4)
	f.rate = 5
	f.pass(time.Minute)
	f.up = false
	f.sample.Ready, f.sample.Slots, f.sample.Failing = 2, 2, 2
	f.rate = 100
	f.sample.Waiting, f.sample.Oldest = 500, time.Minute
	f.pass(time.Minute)
	f.want(4, NotReady)
	f.sample.Failing, f.sample.Ready, f.sample.Booting = 0, 0, 4
	f.pass(time.Minute)
	f.want(4, NotReady)
}

// Calls that would wait for longer than a worker takes to start get more at once;
// those on their way are awaited first.
func TestBacklog(t *testing.T) {
	f := newFeed(t, Options{Min: 1, Max: 50}, 7)
	f.rate = 40
	f.pass(2 * time.Minute)
	f.up = false
	f.sample.Waiting, f.sample.Oldest, f.sample.Booting = 200, 3*time.Second, 1
	f.pass(time.Second)
	f.want(7, Enough)
	f.sample.Booting = 0
	f.pass(250 * time.Millisecond)
	f.want(14, Backlog)
}

// Calls refused for want of time ask for one more, as long as chance may be why.
func TestShed(t *testing.T) {
	f := newFeed(t, Options{Min: 1, Max: 50}, 7)
	f.rate = 40
	f.pass(2 * time.Minute)
	f.sample.Shed++
	f.pass(250 * time.Millisecond)
	f.want(8, Shed)
	f.sample.Shed++
	f.pass(250 * time.Millisecond)
	f.want(8, Enough) // the one that was asked for comes first
	for range 100 {
		f.sample.Shed++
		f.pass(5 * time.Second)
	}
	f.want(12, Enough) // 4 + 4 sqrt(4): deadlines too short for any number
}

// Streams hold slots whatever arrives: a step of short calls does not multiply
// them.
func TestCallsThatLast(t *testing.T) {
	f := newFeed(t, Options{Min: 1, Max: 200}, 1)
	f.rate, f.sample.Long = 40, 10
	stream := func(d time.Duration) {
		for end := f.sample.Now + d; f.sample.Now < end; {
			f.sample.SlotTime += 10 * 250 * time.Millisecond
			f.pass(250 * time.Millisecond)
		}
	}
	stream(2 * time.Minute)
	testkit.Want(t, f.last.Load >= 13.5 && f.last.Load <= 14.5, "the load is %.2f slots, want 14", f.last.Load)
	f.rate = 80
	stream(time.Minute)
	testkit.Want(t, f.last.Load >= 17 && f.last.Load <= 19, "after a step of short calls the load is %.2f slots, want 18", f.last.Load)
}

func TestTooManyChanges(t *testing.T) {
	s := New(Options{Min: 1, Max: 1000}, 1, 1)
	for i := range maxChanges {
		s.Bound(Options{Min: 2 + i, Max: 1000})
		if d := s.Decide(Sample{Now: time.Duration(i+1) * time.Second}); !d.Changed {
			t.Fatalf("change %d: %v", i, d)
		}
	}
	s.Bound(Options{Min: 500, Max: 1000})
	if d := s.Decide(Sample{Now: 20 * time.Second}); d.Changed || d.Reason != Often {
		t.Errorf("one change too many in a minute: %+v", d)
	}
	if d := s.Decide(Sample{Now: 62 * time.Second}); !d.Changed {
		t.Errorf("a minute later: %+v", d)
	}
}

// A machine that slept, and counters that begin anew, leave nothing to compare
// with.
func TestPastThatTellsNothing(t *testing.T) {
	f := newFeed(t, Options{Min: 1, Max: 50}, 1)
	f.rate = 40
	f.pass(2 * time.Minute)
	f.sample.Now += time.Hour
	f.sample.Arrivals += 1_000_000
	f.pass(time.Second)
	f.want(7, Enough)
	f.sample.Arrivals, f.sample.Served, f.sample.SlotTime = 0, 0, 0
	f.pass(time.Second)
	f.want(7, Enough)
}

func TestSamplesTooClose(t *testing.T) {
	s := New(Options{Min: 1, Max: 5}, 3, 1)
	s.Decide(Sample{Now: time.Second})
	if d := s.Decide(Sample{Now: time.Second + time.Millisecond, Arrivals: 1 << 40}); d.Wanted != 3 || d.Changed {
		t.Errorf("got %+v", d)
	}
	s.Set(4, time.Second)
	if d := s.Decide(Sample{Now: time.Second + 2*time.Millisecond}); d.Wanted != 4 || d.Changed {
		t.Errorf("after 4 were set by hand got %+v", d)
	}
}

// What others serve needs no worker here.
func TestEndpointsOfOthers(t *testing.T) {
	f := newFeed(t, Options{Min: 1, Max: 50}, 1)
	f.rate, f.sample.Others = 40, 5
	f.pass(2 * time.Minute)
	f.want(2, Enough)
}

func TestSetByHand(t *testing.T) {
	f := newFeed(t, Options{Min: 1, Max: 50}, 1)
	f.rate = 40
	f.pass(time.Minute)
	f.scaler.Set(3, f.sample.Now)
	f.pass(250 * time.Millisecond)
	f.want(7, Load)
}

func TestReasonsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Reasons() {
		name := r.String()
		testkit.Want(t, name != "" && name != "unknown" && !seen[name], "reason %d is called %q", r, name)
		seen[r.String()] = true
	}
	testkit.Equal(t, reasons.String(), "unknown", "beyond the last")
}

// Whatever is counted, the number stays within its bounds and a decision takes no
// memory.
func FuzzDecide(f *testing.F) {
	f.Add(uint64(1), uint64(2), int64(3), 4, int64(5), 6, 7, 8, int64(9), 1.5)
	f.Add(uint64(1<<63), uint64(0), int64(-1), -4, int64(1<<62), -6, -7, -8, int64(1), -1.0)
	f.Fuzz(func(t *testing.T, arrivals, served uint64, slotTime int64, waiting int, oldest int64, ready, booting, slots int, memory int64, cpus float64) {
		s := New(Options{Min: 2, Max: 9}, 3, 1)
		sample := Sample{
			Waiting: waiting, Oldest: time.Duration(oldest), Ready: ready, Booting: booting, Slots: slots,
			CPUs: cpus, MemoryLimit: memory, MemoryUsed: memory / 3, MemoryEach: memory / 7, Boot: time.Duration(oldest / 2),
		}
		for i := range 50 {
			sample.Now += 250 * time.Millisecond
			sample.Arrivals += arrivals
			sample.Served += served
			sample.SlotTime += time.Duration(slotTime)
			sample.CPU += time.Duration(slotTime / 2)
			sample.Shed += uint64(i & 1)
			d := s.Decide(sample)
			testkit.Need(t, d.Wanted >= 2 && d.Wanted <= 9, "%d workers are wanted", d.Wanted)
		}
	})
}

func BenchmarkDecide(b *testing.B) {
	s := New(Options{Min: 1, Max: 5}, 3, 1)
	sample := Sample{Ready: 3, Slots: 3}
	b.ReportAllocs()
	for b.Loop() {
		sample.Now += 250 * time.Millisecond
		sample.Arrivals += 20
		sample.Served += 20
		sample.SlotTime += 500 * time.Millisecond
		s.Decide(sample)
	}
}
