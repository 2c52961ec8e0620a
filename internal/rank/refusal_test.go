package rank

import (
	"testing"
	"time"
)

// R1: a refused slot pauses 1 ms, doubled per refusal of that endpoint in a row
// up to 250 ms; an OK starts again at 1 ms, other outcomes change nothing.
func TestRefusalPausesTheSlot(t *testing.T) {
	r, _ := newRank(t, 10, 1)
	c := newCaller(0)
	now := time.Duration(0)
	refuse := func(want time.Duration) {
		t.Helper()
		c.acquire(t, r, now, Granted)
		c.release(r, RefusedByWorker, now)
		if !woken(r) {
			t.Fatal("no wake-up for a pause")
		}
		if _, next := tick(r, now+want-1); next != now+want {
			t.Fatalf("pause ends at %v, want %v", next-now, want)
		}
		newWaiter := newCaller(now)
		newWaiter.acquire(t, r, now+want-1, Queued)
		now += want
		if n, next := tick(r, now); n != 1 || next != 0 {
			t.Fatalf("after the pause: %d notices, next %v", n, next)
		}
		newWaiter.release(r, Failed, now)
	}
	for _, want := range []int{1, 2, 4, 8, 16, 32, 64, 128, 250, 250, 250} {
		refuse(time.Duration(want) * ms)
	}
	c.acquire(t, r, now, Granted)
	c.release(r, Cancelled, now)
	refuse(250 * ms)
	c.acquire(t, r, now, Granted)
	c.release(r, OK, now)
	refuse(1 * ms)
}

// R1: a slot that pauses is not free before Tick, and Tick asks for the
// earliest end whatever the order in which pauses began.
func TestPausesEndInOrder(t *testing.T) {
	r, e := newRank(t, 10, 1, 1, 1)
	calls := []*caller{newCaller(0), newCaller(0), newCaller(0)}
	for _, c := range calls {
		c.acquire(t, r, 0, Granted)
	}
	r.ReleaseAt(calls[0].lease, Cancelled, 30*ms, 0, nil)
	if !woken(r) {
		t.Error("no wake-up for the first pause")
	}
	r.ReleaseAt(calls[1].lease, OK, 10*ms, 0, nil)
	if !woken(r) {
		t.Error("no wake-up for an earlier pause")
	}
	r.ReleaseAt(calls[2].lease, RefusedByWorker, 20*ms, 0, nil)
	if woken(r) {
		t.Error("a wake-up for a later pause")
	}
	for _, c := range calls {
		c.acquire(t, r, 5*ms, Queued)
	}
	for i, want := range []struct {
		endpoint *Endpoint
		next     time.Duration
	}{{e[1], 20 * ms}, {e[2], 30 * ms}, {e[0], 0}} {
		n, next := tick(r, time.Duration(i+1)*10*ms)
		if n != 1 || next != want.next || calls[i].lease.Endpoint() != want.endpoint {
			t.Errorf("tick %d: %d notices, next %v, endpoint %v", i, n, next, calls[i].lease.Endpoint())
		}
	}
}

// An until that is over makes ReleaseAt a Release.
func TestReleaseAtInThePast(t *testing.T) {
	r, _ := newRank(t, 0, 1)
	c := newCaller(0)
	c.acquire(t, r, 0, Granted)
	r.ReleaseAt(c.lease, Cancelled, 3*ms, 5*ms, nil)
	if woken(r) {
		t.Error("a wake-up without a pause")
	}
	c.acquire(t, r, 5*ms, Granted)
}

// An endpoint that becomes ready starts afresh: no pause, no row of refusals.
func TestReadyStartsAfresh(t *testing.T) {
	r, e := newRank(t, 10, 1)
	c := newCaller(0)
	for range 3 {
		c.acquire(t, r, 0, Granted)
		c.release(r, RefusedByWorker, 0)
		r.SetReady(e[0], false, 0, nil)
		r.SetReady(e[0], true, 0, nil)
	}
	c.acquire(t, r, 0, Granted)
	c.release(r, RefusedByWorker, 0)
	if _, next := tick(r, 0); next != 1*ms {
		t.Errorf("pause until %v, want 1ms", next)
	}
}

// R1: a refused call goes before all that never had a slot; several refused at
// once keep the order of their arrival, whoever comes back first.
func TestRejoinGoesToTheHead(t *testing.T) {
	r, _ := newRank(t, 1, 3)
	refused := make([]*caller, 3)
	for i := range refused {
		refused[i] = newCaller(time.Duration(i + 1))
		refused[i].acquire(t, r, 0, Granted)
	}
	newcomer := newCaller(0)          // older, but it had no slot yet (its request came in slowly)
	newcomer.acquire(t, r, 0, Queued) // the queue is full now
	for _, i := range []int{2, 0, 1} {
		refused[i].release(r, RefusedByWorker, 0)
		refused[i].rejoin(t, r, 0, Queued)
	}
	if r.Waiting() != 4 {
		t.Fatalf("%d wait, want 4: a full queue refuses no call put back", r.Waiting())
	}
	notices, _ := r.Tick(time.Second, nil)
	deliver(notices)
	for i, c := range refused {
		if notices[i].Waiter != Waiter(c) {
			t.Errorf("grant %d is not for refused call %d", i, i)
		}
	}
	if newcomer.granted != 0 {
		t.Error("the newcomer went before a call put back")
	}
}

// R1: a call that was put back takes a free slot at once, and its time in the
// queue adds up over its turns.
func TestRejoinKeepsTheWait(t *testing.T) {
	r, _ := newRank(t, 10, 1)
	other, c := newCaller(0), newCaller(0)
	other.acquire(t, r, 0, Granted)
	c.acquire(t, r, 2*ms, Queued)
	other.release(r, OK, 5*ms) // c has waited 3 ms
	c.release(r, RefusedByWorker, 50*ms)
	c.rejoin(t, r, 50*ms, Queued)
	tick(r, 51*ms) // and 1 ms more
	if c.lease.Waited() != 4*ms {
		t.Errorf("waited %v, want 4ms", c.lease.Waited())
	}
	c.release(r, Failed, 60*ms)
	c.rejoin(t, r, 60*ms, Granted)
	if c.lease.Waited() != 4*ms {
		t.Errorf("waited %v after a rejoin without waiting, want 4ms", c.lease.Waited())
	}
	c.release(r, OK, 60*ms)
	c.acquire(t, r, 60*ms, Granted)
	if c.lease.Waited() != 0 {
		t.Errorf("the next call of the ticket waited %v, want 0", c.lease.Waited())
	}
}

// R1: Avoid is a preference, not a ban.
func TestAvoid(t *testing.T) {
	r, e := newRank(t, 10, 4, 4)
	for range 3 { // endpoint 0 is the less loaded one each time
		c := newCaller(0)
		c.Request.Avoid = e[0]
		c.acquire(t, r, 0, Granted)
		if c.lease.Endpoint() != e[1] {
			t.Fatal("the avoided endpoint was taken though another slot was free")
		}
	}
	r.SetReady(e[1], false, 0, nil)
	c := newCaller(0)
	c.Request.Avoid = e[0]
	c.acquire(t, r, 0, Granted)
	if c.lease.Endpoint() != e[0] {
		t.Error("the only free slot was not taken")
	}
	gone := newCaller(0)
	r.Remove(e[1], 0)
	gone.Request.Avoid = e[1]
	gone.acquire(t, r, 0, Granted)
}

// A slot whose call was told that no thread is free, and does not come back, pauses as long
// as such calls usually run: a worker that says so at once gets no more calls than others.
func TestMaybeRefusedPausesAsCallsRun(t *testing.T) {
	r, _ := newRank(t, 10, 1)
	c := newCaller(0)
	c.Request.Method = r.Method("m")
	now := time.Second
	for range 2 * enough {
		c.acquire(t, r, now, Granted)
		now += 20 * ms
		c.release(r, OK, now)
	}
	c.acquire(t, r, now, Granted)
	c.release(r, MaybeRefused, now)
	_, next := tick(r, now)
	if pause := next - now; pause < 18*ms || pause > 22*ms {
		t.Errorf("the slot pauses for %v, want 20ms", pause)
	}
	now = next
	tick(r, now)
	c.Request.Method = r.Method("nobody knows")
	c.acquire(t, r, now, Granted)
	c.release(r, MaybeRefused, now)
	if _, next := tick(r, now); next-now != minPause {
		t.Errorf("of a method that nobody knows the slot pauses for %v, want %v", next-now, minPause)
	}
}
