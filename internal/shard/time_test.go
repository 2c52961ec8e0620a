package shard

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/testkit"
)

// bell is a timer that notes when it rang.
type bell struct {
	Timer
	rang []time.Duration
}

func newBell() *bell {
	b := &bell{}
	b.Owner = b
	return b
}

// Expired implements Expirer.
func (b *bell) Expired(_ *Timer, now time.Duration) { b.rang = append(b.rang, now) }

// A timer rings in time, not before, and no more than about a millisecond
// after; a moved one at its new time, a stopped one never.
func TestTimersRingInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		soon, late, moved, stopped := newBell(), newBell(), newBell(), newBell()
		var start time.Duration
		h.do(func() {
			start = h.Now()
			h.SetTimer(&late.Timer, start+10*time.Hour)
			h.SetTimer(&soon.Timer, start+1500*time.Microsecond)
			h.SetTimer(&moved.Timer, start+time.Minute)
			h.SetTimer(&moved.Timer, start+20*time.Second)
			h.SetTimer(&stopped.Timer, start+time.Second)
			h.StopTimer(&stopped.Timer)
		})
		<-time.After(11 * time.Hour) // of the bubble's clock
		synctest.Wait()
		h.do(func() {
			for b, after := range map[*bell]time.Duration{soon: 1500 * time.Microsecond, moved: 20 * time.Second, late: 10 * time.Hour} {
				testkit.Want(t, len(b.rang) == 1 && b.rang[0] >= start+after && b.rang[0] <= start+after+2*tick,
					"after %v: rang %v", after, b.rang)
			}
			testkit.Want(t, stopped.rang == nil, "the stopped timer rang %v", stopped.rang)
		})
	})
}

// task notes that it was run.
type task func(now time.Duration)

// Run implements Task.
func (f task) Run(now time.Duration) { f(now) }

// Posted tasks run soon, under the lock, in the order of posting; those that
// tasks post come after them.
func TestPostedTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		var order []int
		h.do(func() { // posting under the lock is allowed
			for i := range 5 {
				h.Post(task(func(time.Duration) {
					order = append(order, i)
					if i < 2 {
						h.Post(task(func(time.Duration) { order = append(order, 10+i) }))
					}
				}))
			}
			testkit.Want(t, order == nil, "a task ran while the lock was held")
		})
		synctest.Wait()
		h.do(func() {
			testkit.Want(t, fmt.Sprint(order) == "[0 1 2 3 4 10 11]", "order: %v", order)
		})
	})
}

// piped is a caller over a pipe in a synctest bubble.
func piped(t *testing.T, h *host) (*Link, *testkit.Peer, net.Conn) {
	t.Helper()
	ours, theirs := net.Pipe()
	l := h.serve(ours)
	p := testkit.NewCaller(t, theirs)
	p.Greet()
	return l, p, theirs
}

// A peer that takes nothing is waited for as long as linger after Finish.
func TestFinishOfAPeerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		l, p, _ := piped(t, h)
		p.StopReading()
		request(p, 1, testkit.End, "/give/100000")
		synctest.Wait()
		began := time.Now()
		h.do(func() { l.Finish(io.EOF) })
		h.awaitEnd(l)
		waited := time.Since(began)
		testkit.Want(t, waited >= linger && waited <= linger+time.Second, "waited %v", waited)
		testkit.Want(t, h.noted("lost sent=true") == 1, "told %q", h.events)
	})
}

// A peer that reads slowly gets everything after Finish, however long it takes:
// an answer that is cut off is a lost call (R17).
func TestFinishOfASlowPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		ours, theirs := net.Pipe()
		l := h.serve(slowWriter{ours})
		p := testkit.NewCaller(t, theirs)
		p.Greet()
		request(p, 1, testkit.End, "/give/60000")
		synctest.Wait()
		h.do(func() { l.Finish(io.EOF) })
		p.WantHeaders(1, testkit.NoEnd)
		p.WantDataBytes(1, make([]byte, 60000), testkit.NoEnd)
		wantEnd(p, 1)
		p.WantClosed()
	})
}

// slowWriter takes most of the linger time for every write.
type slowWriter struct{ net.Conn }

func (w slowWriter) Write(p []byte) (int, error) {
	<-time.After(700 * time.Millisecond) // of the bubble's clock
	return w.Conn.Write(p)
}

// A worker's link: what is opened before the connection stands leaves when it
// does, behind the greeting.
func TestAttachLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		ours, theirs := net.Pipe()
		var l *Link
		s := &h2.Stream{Owner: &serving{sink: true}}
		h.do(func() {
			l = h.NewLink(h.config(false), service{h}, h)
			l.Conn.Open(s, true, h2.AppendField(nil, ":method", "GET"), h2.AppendField(nil, ":scheme", "http"), h2.AppendField(nil, ":path", "/"))
		})
		synctest.Wait()
		h.do(func() { l.Attach(ours) })
		w := testkit.NewWorker(t, theirs)
		w.Greet()
		w.WantFields(1, testkit.End, ":method", "GET", ":scheme", "http", ":path", "/")
		w.Close()
		reason := h.awaitEnd(l)
		testkit.Want(t, errors.Is(reason, io.EOF), "reason: %v", reason)
		testkit.Want(t, h.noted("lost sent=true") == 1, "told %q", h.events)
	})
}

// A connection that comes for a link that has ended, or to a shard that has
// stopped, is closed.
func TestAttachTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		closed, a := h.attachLate(func(l *Link) { h.do(func() { l.Close(io.EOF) }) })
		stopped, b := h.attachLate(func(*Link) { h.Stop() })
		for _, end := range []net.Conn{a, b} {
			_, err := end.Read(make([]byte, 1))
			testkit.Want(t, errors.Is(err, io.EOF), "read: %v", err)
		}
		h.awaitEnd(closed)
		h.awaitEnd(stopped)
		var after *Link
		ours, theirs := net.Pipe()
		h.do(func() { // a dial that began in Stop
			after = h.NewLink(h.config(false), service{h}, h)
			after.Attach(ours)
		})
		_, err := theirs.Read(make([]byte, 1))
		testkit.Want(t, errors.Is(err, io.EOF), "read: %v", err)
		reason := h.awaitEnd(after)
		testkit.Want(t, errors.Is(reason, errStopped), "reason: %v", reason)
	})
}

// attachLate makes a link, lets between happen and attaches a connection.
func (h *host) attachLate(between func(*Link)) (*Link, net.Conn) {
	var l *Link
	h.do(func() { l = h.NewLink(h.config(false), service{h}, h) })
	between(l)
	ours, theirs := net.Pipe()
	h.do(func() { l.Attach(ours) })
	return l, theirs
}

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
		testkit.Need(t, a.Set() == (a.due != 0), "seed %d: timer %d: set %t at %v, due %v", seed, i, a.Set(), now, a.due)
		if a.due == 0 {
			continue
		}
		set++
		rings := (a.due + tick - 1).Truncate(tick)
		testkit.Need(t, rings > now.Truncate(tick) || rings <= time.Duration(w.now)*tick,
			"seed %d: timer %d, due %v, has not rung at %v", seed, i, a.due, now)
		first = min(first, max(rings, time.Duration(w.now+1)*tick))
	}
	testkit.Need(t, set == w.count, "seed %d: %d timers are counted, %d are set", seed, w.count, set)
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
	testkit.Want(t, told == 5 && w.count == 0, "told %d times, %d timers are left", told, w.count)
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
	testkit.Want(t, a.rang != 0, "the timer has not rung")
	w.set(&a.Timer, 10_000*time.Hour)
	w.advance(9_999 * time.Hour)
	testkit.Want(t, a.rang == 2000*time.Hour, "the timer has rung early")
	// Tick by tick it would be 40 billion steps.
	spent := time.Since(began)
	testkit.Want(t, spent <= 10*time.Second, "it took %v", spent)
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
