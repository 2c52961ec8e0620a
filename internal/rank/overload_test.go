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
	m := knownMethod(r, 20*ms)
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
		_, reply, reason := r.Acquire(&c.Ticket, c, 0)
		if reply == Queued {
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
		if _, reply, _ := r.Acquire(&c.Ticket, c, 0); reply == Queued {
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
			c.acquire(t, r, now, []Reply{Granted, Queued, Queued}[i])
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
	if n := l.callsAhead(r.Open("new", Terms{})); n != 50 {
		t.Errorf("a new caller is expected to wait for %d of 50 calls of others", n)
	}
	heavy := r.Open("heavy", Terms{Weight: 5})
	if n := l.callsAhead(heavy); n != 10 {
		t.Errorf("one of weight 5 is expected to wait for %d of 50 calls of others, want 10", n)
	}
	backlog(t, r, heavy, m, 4, 0)
	if n := l.callsAhead(heavy); n != 54 {
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
	notices, _ := r.Tick(100*ms, nil)
	deliver(notices)
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

// orderState is what an order is told of a list of calls that have a second each.
func orderState(wait, gap time.Duration, l *OrderState) *OrderState {
	l.Time, l.Wait, l.Gap = time.Second, wait, gap
	return l
}

// The order of arrival is turned round when it has been too slow for a tenth of a
// call's time without a break, and after one and a half times that time it is tried
// again.
func TestNewestFirstWhileItIsTooLate(t *testing.T) {
	l := &OrderState{}
	for _, step := range []struct {
		at, wait time.Duration
		newest   bool
	}{
		{time.Second, 930 * ms, false},
		{1010 * ms, 940 * ms, false}, // too late from here on
		{1090 * ms, 940 * ms, false},
		{1095 * ms, 900 * ms, false}, // a break
		{1100 * ms, 940 * ms, false},
		{1190 * ms, 990 * ms, false},
		{1200 * ms, 990 * ms, true},
		{1900 * ms, 100 * ms, true}, // as few as that may wait while most are served at once
		{2690 * ms, 400 * ms, true},
		{2700 * ms, 520 * ms, false},
		{3000 * ms, 640 * ms, false}, // more than five eighths, but hardly more than before
		{3100 * ms, 660 * ms, true},  // a quarter more
		{4600 * ms, 640 * ms, false},
		{4700 * ms, 790 * ms, false},
		{6590 * ms, 790 * ms, false},
		{6610 * ms, 930 * ms, false}, // the trial is over: it was good enough
	} {
		if got := Adaptive(orderState(step.wait, 10*ms, l), step.at); got != step.newest {
			t.Errorf("at %v with %v to wait: %v", step.at, step.wait, got)
		}
	}
}

// A queue that does not grow in the order of arrival stays in it, however long it
// is: callers wait for their answers before they send more.
func TestFullLoopIsNoOverload(t *testing.T) {
	l := &OrderState{}
	for now := 0 * ms; now < time.Minute; now += ms {
		if Adaptive(orderState(930*ms, 10*ms, l), now) {
			t.Fatalf("newest first at %v", now)
		}
	}
}

// When there are twice as many slots as before the order of arrival is tried at once.
func TestFirstComeAgainWithMoreSlots(t *testing.T) {
	l := &OrderState{}
	Adaptive(orderState(time.Second, 10*ms, l), time.Second)
	if !Adaptive(orderState(time.Second, 10*ms, l), 1100*ms) || !Adaptive(orderState(500*ms, 6*ms, l), 1200*ms) {
		t.Fatal("not newest first")
	}
	if Adaptive(orderState(400*ms, 5*ms, l), 1210*ms) {
		t.Error("still newest first")
	}
}

// Calls that may take any time are served as they came.
func TestNoDeadlineNoOverload(t *testing.T) {
	l := &OrderState{Wait: time.Hour, Gap: time.Second}
	for now := time.Second; now < time.Hour; now += time.Second {
		if Adaptive(l, now) {
			t.Fatal("newest first")
		}
	}
}

// Under overload the newest call goes first, those who ask are told so, and an
// empty list forgets it.
func TestOverloadIsSeen(t *testing.T) {
	r, m, running := taught(t, 1000)
	calls := backlog(t, r, nil, m, 50, 0) // 50 x 20 ms
	for i := range calls {
		calls[i].Request.Until = time.Second
	}
	now := 0 * ms
	serve := func(arrives *caller) {
		t.Helper()
		if arrives != nil {
			calls = append(calls, arrives)
		}
		if running = running.next(r, now, calls); running == nil {
			t.Fatalf("nobody was served at %v", now)
		}
	}
	for ; r.Overloaded() == 0 && now < time.Second; now += 20 * ms {
		late := with(nil, m, now)
		late.Request.Until = now + time.Second
		late.acquire(t, r, now, Queued)
		serve(late)
	}
	if r.Overloaded() != 1 || running != calls[len(calls)-1] {
		t.Fatalf("at %v the newest goes first for %d callers", now, r.Overloaded())
	}
	select {
	case <-r.Wake():
	default:
		t.Error("nobody is woken")
	}
	for _, c := range calls {
		r.Leave(&c.Ticket)
	}
	if d := r.Decisions(); r.Overloaded() != 0 || d["turned_newest_first"] != 1 || d["turned_first_come"] != 1 {
		t.Errorf("%d callers, %v", r.Overloaded(), d)
	}
}

// R1: a call that was put back goes first even then.
func TestPutBackCallsGoFirstUnderOverload(t *testing.T) {
	var l waitList
	tickets := make([]Ticket, 3)
	for i := range tickets {
		l.join(&tickets[i], tail)
	}
	if l.next(newestFirst, 0) != &tickets[2] {
		t.Fatal("no overload")
	}
	var back Ticket
	l.join(&back, head)
	if l.next(newestFirst, 0) != &back || l.toDrop() == &back {
		t.Error("the call that was put back lost its place")
	}
}

// Drain tells about how long the queue is.
func TestDrainTime(t *testing.T) {
	r, m, _ := taught(t, 1000)
	backlog(t, r, nil, m, 10, 0)
	if d := r.QueueTime(); d != 200*ms {
		t.Errorf("%v for 10 calls of 20 ms", d)
	}
}
