package rank

import (
	"math"
	"slices"
	"testing"
	"time"
)

// A queue may become shorter than it is: those who wait go on to wait, and
// newcomers find it full.
func TestQueueGetsShorter(t *testing.T) {
	r, _ := newRank(t, 10, 1)
	running := newCaller(0)
	running.acquire(t, r, 0, Granted)
	waiting := backlog(t, r, nil, nil, 3, 0)
	r.Configure(Options{QueueLength: 2}, 0, nil)
	newCaller(0).acquire(t, r, 0, Refused)
	r.Configure(Options{QueueLength: 4}, 0, nil)
	newCaller(0).acquire(t, r, 0, Queued)
	running.release(r, OK, ms)
	if waiting[0].granted != 1 || r.Waiting() != 3 {
		t.Errorf("granted %d, %d wait", waiting[0].granted, r.Waiting())
	}
}

// R8: streams that waited for slots of their own begin when there are more of them.
func TestMoreStreamSlots(t *testing.T) {
	r := New(Options{QueueLength: 10, StreamSlots: 1})
	r.SetReady(r.Add("worker-1", EndpointOptions{Slots: 3}), true, 0, nil)
	long := r.Method("/chat.Chat/Stream")
	long.observe(time.Minute, 0)
	with(nil, long, 0).acquire(t, r, 0, Granted)
	second := with(nil, long, 0)
	second.acquire(t, r, 0, Queued)
	for _, g := range r.Configure(Options{QueueLength: 10, StreamSlots: 2}, ms, nil) {
		g.Deliver()
	}
	if second.granted != 1 {
		t.Error("a stream waits although there is a slot for it")
	}
}

// R16: what is shed for its deadline, and in which order calls are served, can
// change.
func TestOrderAndAdmissionChange(t *testing.T) {
	r, _ := newRank(t, 10, 1)
	m := knownMethod(r, time.Second)
	with(nil, m, 0).acquire(t, r, 0, Granted)
	hopeless := func(want Reply) {
		t.Helper()
		c := with(nil, m, 0)
		c.Request.Deadline = 10 * ms
		c.acquire(t, r, ms, want)
	}
	hopeless(Refused)
	r.Configure(Options{QueueLength: 10, Admit: BoundedLength, Order: FIFO}, ms, nil)
	hopeless(Queued)
	r.Configure(Options{QueueLength: 10}, ms, nil)
	hopeless(Refused)
}

// New weights hold for those who wait already, and the sums stay right.
func TestWeightsChange(t *testing.T) {
	r, _ := newRank(t, 100_000, 1)
	m := knownMethod(r, 20*ms)
	one, other := r.Open("one", Terms{}), r.Open("other", Terms{Weight: 3})
	running := with(nil, m, 0)
	running.acquire(t, r, 0, Granted)
	calls := map[*Account][]*caller{one: backlog(t, r, one, m, 4000, 0), other: backlog(t, r, other, m, 4000, 0)}
	served := func() map[*Account]int {
		n := map[*Account]int{}
		for a, all := range calls {
			for _, c := range all {
				n[a] += c.granted
			}
		}
		return n
	}
	now := time.Duration(0)
	serve := func(n int) {
		for range n {
			now += 20 * ms
			running = running.next(r, now, slices.Concat(calls[one], calls[other]))
		}
	}
	serve(400)
	first := served()
	if first[other] < 285 || first[other] > 315 {
		t.Errorf("of 400 calls %d are those of the account with three shares", first[other])
	}
	r.Retune(func(key string) Terms {
		if key == "one" {
			return Terms{Weight: 7}
		}
		return Terms{}
	}, now)
	if l := r.lanes[0].level; math.Abs(l.weights-8) > 1e-9 || math.Abs(r.queue.lanes[0].weights-8) > 1e-9 {
		t.Errorf("the weights of those who wait are %v and %v", l.weights, r.queue.lanes[0].weights)
	}
	serve(400)
	second := served()
	if got := second[one] - first[one]; got < 335 || got > 365 {
		t.Errorf("of 400 calls %d are those of the account with seven shares of eight", got)
	}
	for a, all := range calls {
		for _, c := range all {
			if c.granted == 0 {
				r.Leave(&c.Ticket)
			}
		}
		r.Close(a)
	}
	if l := r.lanes[0].level; l.weights != 0 || l.waiting != 0 {
		t.Errorf("nobody waits, and the level has %+v", l)
	}
}

// A new rate goes on from the tokens that are missing, and what had no limit gets
// one.
func TestRatesChange(t *testing.T) {
	r, _ := newRank(t, 10, 100)
	a := r.Open("a", Terms{Rate: 10, Burst: 10})
	take := func(now time.Duration) (n int) {
		for a.admit(now) == NoReason {
			n++
		}
		return n
	}
	if n := take(0); n != 10 {
		t.Fatalf("a burst of %d", n)
	}
	retune := func(terms Terms, now time.Duration) { r.Retune(func(string) Terms { return terms }, now) }
	retune(Terms{Rate: 100, Burst: 10}, 0)
	if n := take(0); n != 0 {
		t.Errorf("%d calls beyond the burst that was used", n)
	}
	if n := take(50 * ms); n != 5 {
		t.Errorf("%d calls in 50ms at 100 a second", n)
	}
	retune(Terms{Rate: 100, Burst: 2}, 50*ms)
	if n := take(70 * ms); n != 2 {
		t.Errorf("%d calls at once, of at most 2", n)
	}
	retune(Terms{Concurrent: 1}, 70*ms)
	for range 100 {
		if a.admit(70*ms) != NoReason {
			t.Fatal("a rate that is gone still holds")
		}
	}
	with(a, nil, 0).acquire(t, r, 70*ms, Granted)
	with(a, nil, 0).acquire(t, r, 70*ms, Refused)
}
