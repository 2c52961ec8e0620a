package rank

import (
	"slices"
	"testing"
	"time"
)

// shared is a rank of 15 slots, and a caller who has used six of them at a time for
// calls of 20 ms for a while, the last of which still run.
func shared(t *testing.T) (r *Rank, good *Account, short *Method, running []*caller, now time.Duration) {
	t.Helper()
	r, _ = newRank(t, 100, 5, 5, 5)
	good, short = r.Open("good", Terms{}), knownMethod(r, 20*ms)
	running, now = goOn(t, r, good, short, nil, 0, 6*time.Second)
	return r, good, short, running, now
}

// goOn has six calls of it run at a time from now until then, after those that run.
func goOn(t *testing.T, r *Rank, good *Account, short *Method, running []*caller, now, then time.Duration) ([]*caller, time.Duration) {
	t.Helper()
	for ; now < then; now += 20 * ms {
		for _, c := range running {
			c.release(r, OK, now)
		}
		running = running[:0]
		for range 6 {
			c := with(good, short, now)
			c.acquire(t, r, now, Granted)
			running = append(running, c)
		}
		notices, _ := r.Tick(now, nil)
		deliver(notices)
	}
	return running, now
}

// started counts those of n calls of the account that start at once.
func started(r *Rank, a *Account, m *Method, n int, now time.Duration) (running, waiting []*caller) {
	for range n {
		c := with(a, m, now)
		c.Request.OnCancel = Hold
		lease, reply, _ := r.Acquire(&c.Ticket, c, now)
		if reply == Granted {
			c.lease = lease
			running = append(running, c)
		} else {
			waiting = append(waiting, c)
		}
	}
	return running, waiting
}

// A caller who keeps slots for longer than others has its share of them, and more
// as far as the others leave it: all when they have gone.
func TestWhoKeepsSlotsLeavesRoom(t *testing.T) {
	r, good, short, others, now := shared(t)
	greedy := r.Open("greedy", Terms{})
	running, waiting := started(r, greedy, nil, 20, now)
	if len(running) != 7 { // of 9 that are free
		t.Errorf("%d of its calls have started, want its share, 7", len(running))
	}
	if r.Decisions()["waited_for_others"] != 13 || r.Wanted() {
		t.Errorf("%d calls leave slots to others, wanted: %v", r.Decisions()["waited_for_others"], r.Wanted())
	}
	for _, c := range others {
		c.release(r, OK, now)
	}
	if len(r.free) == 0 || waiting[0].granted != 0 {
		t.Fatal("it took what others had just given back")
	}
	with(good, short, now).acquire(t, r, now, Granted)
	if !woken(r) {
		t.Fatal("no Tick is asked for")
	}
	for granted := 0; granted < 6; {
		notices, next := r.Tick(now, nil)
		granted += deliver(notices)
		if next == 0 && granted < 6 || now > time.Minute {
			t.Fatalf("%v: %d calls more have started, next look at %v", now, granted, next)
		}
		now = max(next, now)
	}
	if now < 6500*ms {
		t.Errorf("it had all slots but one at %v: as if nobody had been there", now)
	}
}

// One whose calls of half a minute end all at once begins as many in one second; it is
// not taken for one who gives its slots back soon.
func TestWhoRenewsLongCallsLeavesRoom(t *testing.T) {
	r, good, short, others, now := shared(t)
	greedy := r.Open("greedy", Terms{})
	running, waiting := started(r, greedy, nil, 20, now)
	others, now = goOn(t, r, good, short, others, now, now+30*time.Second)
	for _, c := range running {
		c.release(r, OK, now)
	}
	goOn(t, r, good, short, others, now, now+3*time.Second)
	if again := slices.DeleteFunc(waiting, func(c *caller) bool { return c.granted == 0 }); len(again) != 7 {
		t.Errorf("%d of its calls have started, want its share, 7", len(again))
	}
}

// One who has as many, but gives each back as soon as others do, leaves nothing. As
// long as that is not known it leaves room.
func TestWhoIsAsQuickLeavesNothing(t *testing.T) {
	r, good, short, others, now := shared(t)
	quick := r.Open("quick", Terms{})
	for range 100 {
		running, waiting := started(r, quick, short, 9, now)
		if now < 6100*ms && len(running) != 7 {
			t.Fatalf("%v: %d calls of a stranger have started, want its share, 7", now, len(running))
		}
		if now > 7*time.Second && len(running) != 9 {
			t.Fatalf("%v: %d of its calls have started, want 9", now, len(running))
		}
		for _, c := range waiting {
			r.Leave(&c.Ticket)
		}
		others, _ = goOn(t, r, good, short, others, now, now+20*ms)
		now += 20 * ms
		for _, c := range running {
			c.release(r, OK, now)
		}
	}
}

// Ghosts count: who has made some has the room for no more.
func TestGhostsLeaveRoom(t *testing.T) {
	r, good, short, others, now := shared(t)
	haunting := r.Open("haunting", Terms{})
	held := func() int { return haunting.running + haunting.ghosts }
	most := 0
	for range 600 { // 60 a second
		running, waiting := started(r, haunting, nil, 1, now)
		now += 5 * ms
		for _, c := range running {
			c.release(r, Cancelled, now)
		}
		for _, c := range waiting {
			r.Leave(&c.Ticket)
		}
		for _, c := range others {
			c.release(r, OK, now)
		}
		others, _ = started(r, good, short, 6, now)
		if len(others) != 6 {
			t.Fatalf("%v: only %d of six calls have started beside %d slots", now, len(others), held())
		}
		most = max(most, held())
		now += 12 * ms
		notices, _ := r.Tick(now, nil)
		deliver(notices)
	}
	if most > 9 || most < 7 {
		t.Errorf("it had %d slots at a time, want its share of 7, or little more", most)
	}
}

// A slot is reclaimed for somebody who has less than his share and waits, as long as
// its own caller has more. Who waits counts, for however long.
func TestReclaims(t *testing.T) {
	r, _ := newRank(t, 100, 4)
	a, b := r.Open("a", Terms{}), r.Open("b", Terms{})
	running, _ := started(r, a, nil, 4, 0)
	if r.Reclaims(running[0].lease, 0) {
		t.Error("for nobody")
	}
	with(a, nil, 0).acquire(t, r, 0, Queued)
	if r.Reclaims(running[0].lease, 0) {
		t.Error("for its own caller")
	}
	with(b, nil, 0).acquire(t, r, 0, Queued)
	for _, c := range running[:2] {
		if !r.Reclaims(c.lease, 10*time.Second) {
			t.Fatal("it has four slots, its share is two")
		}
		c.release(r, Cancelled, 10*time.Second)
	}
	if r.Reclaims(running[2].lease, 10*time.Second) {
		t.Error("it has no more than its share, but for ghosts")
	}
}

// While somebody else has asked for a slot in the last minute, a caller whose calls take
// long has all but one; alone it has all, and one slot in all is everybody's.
func TestOneSlotIsLeft(t *testing.T) {
	for _, slots := range []int{1, 2, 15} {
		r, _ := newRank(t, 100, slots)
		long, other, short := r.Open("long", Terms{}), r.Open("other", Terms{}), knownMethod(r, 20*ms)
		c := with(other, short, 0)
		c.acquire(t, r, 0, Granted)
		c.release(r, OK, 20*ms)
		r.Close(other) // its connection has ended
		for now, want := 3*time.Second, max(slots-1, 1); now < 70*time.Second; now += 2 * time.Second {
			if now >= askedFor {
				want = slots
			}
			running, waiting := started(r, long, nil, slots, now)
			if len(running) != want {
				t.Fatalf("%v: it has %d of %d slots, want %d", now, len(running), slots, want)
			}
			for _, c := range waiting {
				r.Leave(&c.Ticket)
			}
			for _, c := range running {
				c.release(r, OK, now+time.Second)
			}
		}
	}
}

// One whose connections come and go is no other caller.
func TestReconnectingIsNoOtherCaller(t *testing.T) {
	r, _ := newRank(t, 100, 4)
	for i := range 3 {
		a := r.Open("a", Terms{})
		running, _ := started(r, a, nil, 4, time.Duration(i)*time.Second)
		if len(running) != 4 {
			t.Errorf("%d of its calls have started, want all 4", len(running))
		}
		for _, c := range running {
			c.release(r, OK, time.Duration(i)*time.Second+ms)
		}
		r.Close(a)
	}
}

// Slots of workers that get no more calls are none that somebody has.
func TestSlotsThatAreAwayAreNotHis(t *testing.T) {
	r, e := newRank(t, 100, 5, 5)
	a, b := r.Open("a", Terms{}), r.Open("b", Terms{})
	r.SetReady(e[1], false, 0, nil)
	started(r, a, nil, 5, 0)
	r.SetReady(e[1], true, 0, nil)
	r.SetReady(e[0], false, 0, nil)
	c := with(b, nil, 0)
	c.acquire(t, r, 0, Granted)
	c.release(r, OK, ms)
	if running, _ := started(r, a, nil, 5, 2*ms); len(running) != 4 {
		t.Errorf("%d of its calls have started, want all but one of the five", len(running))
	}
}

// Nobody leaves anything to those of a lower priority.
func TestHigherLanesLeaveNothing(t *testing.T) {
	r := New(Options{QueueLength: 100, Lanes: []LaneOptions{{Name: "batch", Priority: -1}}})
	e := r.Add("worker", EndpointOptions{Slots: 10})
	r.SetReady(e, true, 0, nil)
	batch, high := r.Open("batch", Terms{}), r.Open("high", Terms{})
	m, now := knownMethod(r, 20*ms), time.Duration(0)
	var running []*caller
	for range 100 {
		for _, c := range running {
			c.release(r, OK, now)
		}
		running = running[:0]
		for range 4 {
			c := with(batch, m, now)
			c.Request.Lane = 1
			c.acquire(t, r, now, Granted)
			running = append(running, c)
		}
		now += 20 * ms
	}
	if running, _ := started(r, high, nil, 10, now); len(running) != 6 {
		t.Errorf("%d of its calls have started, want 6", len(running))
	}
}
