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
		grants, _ := r.Tick(now, nil)
		deliver(grants)
	}
	return running, now
}

// started counts those of n calls of the account that start at once.
func started(r *Rank, a *Account, m *Method, n int, now time.Duration) (running, waiting []*caller) {
	for range n {
		c := with(a, m, now)
		c.Request.OnCancel = Hold
		lease, verdict, _ := r.Acquire(&c.Ticket, c, now)
		if verdict == Granted {
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
	if len(running) != 8 { // of 9 that are free
		t.Errorf("%d of its calls have started, want 8", len(running))
	}
	if r.Decisions()["waited_for_others"] != 12 || r.Wanted() {
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
		grants, next := r.Tick(now, nil)
		granted += deliver(grants)
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

// One who has as many, but gives each back as soon as others do, leaves nothing.
func TestWhoIsAsQuickLeavesNothing(t *testing.T) {
	r, _, short, _, now := shared(t)
	if running, _ := started(r, r.Open("quick", Terms{}), short, 20, now); len(running) != 9 {
		t.Errorf("%d of its calls have started, want 9", len(running))
	}
}

// A call that has sent nothing leaves room whatever its method is known to take.
func TestSilentCallsLeaveRoom(t *testing.T) {
	r, _, short, _, now := shared(t)
	silent := r.Open("silent", Terms{})
	n := 0
	for ; n < 20; n++ {
		c := with(silent, short, now)
		c.Request.Silent = true
		if _, verdict, _ := r.Acquire(&c.Ticket, c, now); verdict != Granted {
			break
		}
	}
	if n != 7 {
		t.Errorf("%d of its calls have started, want 7", n)
	}
}

// A call that has sent nothing, and leaves a free slot to others, does not keep it
// from the calls of its own caller that have: not from those that wait behind it, nor
// from itself as soon as it has sent something.
func TestSilentCallsAreInNobodysWay(t *testing.T) {
	r, _, short, _, now := shared(t)
	gateway := r.Open("gateway", Terms{})
	running, _ := started(r, gateway, short, 9, now)
	waits := func(silent bool) *caller {
		c := with(gateway, short, now)
		c.Request.Silent = silent
		c.acquire(t, r, now, Queued)
		return c
	}
	silent, late, speaking := waits(true), waits(true), waits(false)
	running[0].release(r, OK, now)
	if speaking.granted != 1 {
		t.Error("a call waits for a free slot behind one that leaves it to others")
	}
	running[1].release(r, OK, now)
	if silent.granted+late.granted != 0 {
		t.Fatal("a call that has sent nothing took what others may need")
	}
	r.Speaks(&late.Ticket)
	grants, _ := r.Tick(now, nil)
	deliver(grants)
	if late.granted != 1 || silent.granted != 0 {
		t.Errorf("granted: the one that has sent something %d, the one that has not %d", late.granted, silent.granted)
	}
	if oldest := r.Use(now + time.Second).Oldest; oldest != time.Second {
		t.Errorf("the oldest has waited for %v, want 1 s", oldest)
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
		grants, _ := r.Tick(now, nil)
		deliver(grants)
	}
	if most > 9 || most < 7 {
		t.Errorf("it had %d slots at a time, want its share of 7, or little more", most)
	}
}

// A call gives way to somebody who has less than his share and waits, as long as
// its own caller has more.
func TestCrowding(t *testing.T) {
	r, _ := newRank(t, 100, 4)
	a, b := r.Open("a", Terms{}), r.Open("b", Terms{})
	running, _ := started(r, a, nil, 4, 0)
	if waited := r.Crowding(running[0].lease, 0); waited != 0 {
		t.Errorf("nobody waits, and has for %v", waited)
	}
	waits := with(b, nil, 0)
	waits.acquire(t, r, 0, Queued)
	with(a, nil, 0).acquire(t, r, 0, Queued)
	if waited := r.Crowding(running[0].lease, 50*ms); waited != 50*ms {
		t.Errorf("somebody has waited for %v, want 50 ms", waited)
	}
	for _, c := range running[:2] {
		if waited := r.Crowding(c.lease, 50*ms); waited == 0 {
			t.Fatal("it has four slots, its share is two")
		}
		c.release(r, Cancelled, 50*ms)
	}
	if waited := r.Crowding(running[2].lease, 60*ms); waited != 0 {
		t.Error("it has no more than its share, but for ghosts")
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
