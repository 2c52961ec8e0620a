package rank

import (
	"fmt"
	"testing"
	"time"
)

// taught returns a rank with one slot in use, for calls that take 20 ms, and its
// method.
func taught(tb testing.TB, queue int) (*Rank, *Method, *caller) {
	tb.Helper()
	r, _ := newRank(tb, queue, 1)
	m := r.Method("/a.B/C")
	for range enough {
		m.observe(20*ms, 0)
	}
	running := with(nil, m, 0)
	running.acquire(tb, r, 0, Granted)
	r.handovers = handovers{mean: 20 * ms, count: enough}
	return r, m, running
}

// R16: a call that cannot end before its deadline is refused when it comes, one
// in a hundred is let through, and nobody is refused while a slot is free.
func TestShedAtArrival(t *testing.T) {
	r, m, running := taught(t, 1000)
	backlog(t, r, nil, m, 10, 0)
	ask := func(left time.Duration) Reason {
		c := with(nil, m, 0)
		c.Request.Deadline = left
		_, verdict, reason := r.Acquire(&c.Ticket, c, 0)
		if verdict == Queued {
			r.Leave(&c.Ticket)
		}
		return reason
	}
	if got := ask(300 * ms); got != NoReason {
		t.Errorf("with 300 ms for 11 x 20 ms and its own 20: %v", got)
	}
	refused := 0
	for range 200 {
		if ask(200*ms) == WontFinish {
			refused++
		}
	}
	if refused != 198 {
		t.Errorf("%d of 200 were refused, want 198", refused)
	}
	r2, m2, running2 := taught(t, 1000)
	running2.release(r2, OK, 0)
	c := with(nil, m2, 0)
	c.Request.Deadline = ms
	c.acquire(t, r2, 0, Granted)
	_ = running
}

// R16: and at the head of the queue.
func TestShedAtTheHead(t *testing.T) {
	r, m, running := taught(t, 1000)
	late, timely := with(nil, m, 0), with(nil, m, 0)
	late.Request.Deadline, timely.Request.Deadline = 50*ms, time.Second
	late.acquire(t, r, 0, Queued)
	timely.acquire(t, r, 0, Queued)
	running.release(r, OK, 40*ms)
	if len(late.refused) != 1 || late.refused[0] != WontFinish || timely.granted != 1 {
		t.Errorf("a call with 10 ms left for 20: %v; the next was granted %d times", late.refused, timely.granted)
	}
}

// R16: the one in a hundred that may wait to teach what has changed is not refused
// when its turn has come.
func TestSparedCallsStart(t *testing.T) {
	r, m, running := taught(t, 1000)
	var spared *caller
	for range 100 {
		c := with(nil, m, 0)
		c.Request.Deadline = 19 * ms
		if _, verdict, _ := r.Acquire(&c.Ticket, c, 0); verdict == Queued {
			spared = c
		}
	}
	if spared == nil {
		t.Fatal("none of 100 was let through")
	}
	running.release(r, OK, 10*ms)
	if spared.granted != 1 {
		t.Errorf("the one that was let through was told %v", spared.refused)
	}
}

// R16: nor by what was learned long ago, of a method that was not called since or
// of a queue in which nobody waited since.
func TestNothingIsShedByOldNews(t *testing.T) {
	r, m, _ := taught(t, 1000)
	backlog(t, r, nil, nil, 100, 0)
	for _, left := range []time.Duration{10 * ms, 500 * ms} { // less than a call, less than the queue
		c := with(nil, m, 0)
		c.Request.Deadline = left
		c.acquire(t, r, 0, Refused)
		const later = 10 * time.Minute
		c = with(nil, m, later)
		c.Request.Deadline = later + left
		c.acquire(t, r, later, Queued)
		m.observe(20*ms, later) // one run does not make up for it
		r.Leave(&c.Ticket)
		r, m, _ = taught(t, 1000)
		backlog(t, r, nil, nil, 100, 0)
	}
}

// What a place in the queue costs is measured while all slots are in use, not
// while somebody waits for something else.
func TestHandoversOfFreeSlotsDoNotCount(t *testing.T) {
	r := New(Options{QueueLength: 1000, StreamSlots: 1})
	e := r.Add("worker-1", EndpointOptions{Slots: 2, OnCancel: Free})
	r.SetReady(e, true, 0, nil)
	stream := r.Method("/chat.Chat/Stream")
	now := time.Duration(0)
	one, two := with(nil, stream, now), with(nil, stream, now)
	stream.observe(time.Hour, now)
	one.acquire(t, r, now, Granted)
	two.acquire(t, r, now, Queued)
	burst := func() {
		calls := []*caller{newCaller(now), newCaller(now), newCaller(now)}
		for i, c := range calls {
			c.acquire(t, r, now, []Verdict{Granted, Queued, Queued}[i])
		}
		for _, c := range calls {
			now += 10 * ms
			c.release(r, OK, now)
		}
	}
	for range 20 {
		burst()
		now += time.Second
	}
	down := newCaller(now)
	r.SetReady(e, false, now, nil)
	down.acquire(t, r, now, Queued)
	now += time.Minute
	deliver(r.SetReady(e, true, now, nil))
	down.release(r, OK, now+ms)
	if mean := r.handovers.mean; mean > 12*ms {
		t.Errorf("calls that are served every 10 ms seem to be served every %v", mean)
	}
}

// Others who wait count, be it one call of each.
func TestExpectedWaitCountsOtherCallers(t *testing.T) {
	r, m, _ := taught(t, 1000)
	for i := range 50 {
		backlog(t, r, r.Open(fmt.Sprint(i), Terms{}), nil, 1, 0)
	}
	l := &r.queue.lanes[0]
	if n := l.ahead(r.Open("new", Terms{})); n != 50 {
		t.Errorf("a new caller is expected to wait for %d of 50 calls of others", n)
	}
	heavy := r.Open("heavy", Terms{Weight: 5})
	if n := l.ahead(heavy); n != 10 {
		t.Errorf("one of weight 5 is expected to wait for %d of 50 calls of others, want 10", n)
	}
	backlog(t, r, heavy, m, 4, 0)
	if n := l.ahead(heavy); n != 54 {
		t.Errorf("with 4 calls that wait he is expected to wait for %d, want all 54", n)
	}
}

// R5, R16: a call with little time left is not sent to a worker that may still be
// busy with a ghost.
func TestLittleTimeIsNotSpentOnGhosts(t *testing.T) {
	r, m, running := taught(t, 1000)
	short, ample := with(nil, m, 0), with(nil, m, 0)
	short.Request.Deadline, ample.Request.Deadline = 130*ms, time.Second
	short.acquire(t, r, 0, Queued)
	ample.acquire(t, r, 0, Queued)
	running.lease.Endpoint().onCancel = Hold
	running.release(r, Cancelled, 80*ms)
	grants, _ := r.Tick(100*ms, nil)
	deliver(grants)
	if len(short.refused) != 1 || short.refused[0] != WontFinish || ample.granted != 1 {
		t.Errorf("with 30 ms for 20, behind a ghost: %v; the next was granted %d times", short.refused, ample.granted)
	}
}

// R16: nobody is refused by what has hardly been learned.
func TestNothingIsShedUnlearned(t *testing.T) {
	r, _ := newRank(t, 10, 1)
	m := r.Method("/a.B/C")
	for range enough - 1 {
		m.observe(time.Minute, 0)
	}
	newCaller(0).acquire(t, r, 0, Granted)
	c := with(nil, m, 0)
	c.Request.Deadline = 10 * ms
	c.acquire(t, r, 0, Queued)
}

// Under standing overload the newest call goes first, one that has waited for
// half of its time is told, and it ends when the queue does.
func TestNewestFirstUnderStandingOverload(t *testing.T) {
	r, m, running := taught(t, 1000)
	r.demand = demand{work: float64(time.Minute), calls: 3000, seen: time.Minute} // more than enough
	call := func(now time.Duration) *caller {
		c := with(nil, m, now)
		c.Request.Until = now + time.Second
		c.acquire(t, r, now, Queued)
		return c
	}
	calls := []*caller{call(0), call(0), call(0), call(0)}
	step := func(now time.Duration) {
		t.Helper()
		running.release(r, OK, now)
		for _, c := range calls {
			if c.granted == 1 && c.lease.At() == now {
				running = c
				return
			}
		}
		t.Fatalf("nobody was served at %v", now)
	}
	step(200 * ms) // the queue stands from here on
	calls = append(calls, call(290*ms))
	step(280 * ms)
	if running == calls[4] {
		t.Error("a burst turned the order round")
	}
	step(310 * ms)
	if running != calls[4] {
		t.Error("the newest call did not go first")
	}
	calls = append(calls, call(590*ms))
	running.release(r, OK, 600*ms)
	told := 0
	for _, c := range calls {
		if len(c.refused) == 1 && c.refused[0] == Overload {
			told++
		}
	}
	if told != 2 || calls[5].granted != 1 {
		t.Errorf("%d calls that waited for more than half a second of one were told, want 2", told)
	}
	running = calls[5]
	calls = append(calls, call(605*ms), call(610*ms))
	step(620 * ms)
	if running != calls[6] {
		t.Error("the overload is over, and the order is still turned round")
	}
}

// R1: a call that was put back goes first even then.
func TestPutBackCallsGoFirstUnderOverload(t *testing.T) {
	var l line
	tickets := make([]Ticket, 3)
	for i := range tickets {
		tickets[i].Request.Until = time.Second
		l.join(&tickets[i], tail)
	}
	l.next(Adaptive, true, 500*ms)
	if l.next(Adaptive, true, 600*ms) != &tickets[2] {
		t.Fatal("no overload")
	}
	var back Ticket
	back.Request.Until = time.Second
	l.join(&back, head)
	if l.next(Adaptive, true, 600*ms) != &back || l.stale(600*ms) != nil || l.spare() == &back {
		t.Error("the call that was put back lost its place")
	}
}

// Without more work than can be done a queue has to stand for much longer.
func TestLongCallsAreNoOverload(t *testing.T) {
	var l line
	var oldest, newest Ticket
	oldest.Request.Until, newest.Request.Until = time.Second, time.Second
	l.join(&oldest, tail)
	l.join(&newest, tail)
	for _, step := range []struct {
		at     time.Duration
		newest bool
	}{{130 * ms, false}, {900 * ms, false}, {2100 * ms, false}, {2140 * ms, true}} {
		if got := l.next(Adaptive, false, step.at) == &newest; got != step.newest {
			t.Errorf("at %v the newest is first: %v", step.at, got)
		}
	}
}

// Demand is told from what chance does.
func TestDemand(t *testing.T) {
	for _, test := range []struct {
		load float64
		rate int // calls a second
		want bool
	}{{0.9, 200, false}, {1.05, 200, false}, {1.4, 200, true}, {1.4, 5, false}, {3, 5, true}, {1.1, 5000, true}} {
		var d demand
		work := time.Duration(test.load * 4 * float64(time.Second) / float64(test.rate))
		for i := range 5 * test.rate {
			d.add(work, time.Duration(i)*time.Second/time.Duration(test.rate))
		}
		if got := d.exceeds(4); got != test.want {
			t.Errorf("load %v of %d calls a second exceeds: %v", test.load, test.rate, got)
		}
	}
}

// Drain tells about how long the queue is.
func TestDrainTime(t *testing.T) {
	r, m, _ := taught(t, 1000)
	backlog(t, r, nil, m, 10, 0)
	if d := r.Drain(); d != 200*ms {
		t.Errorf("%v for 10 calls of 20 ms", d)
	}
}
