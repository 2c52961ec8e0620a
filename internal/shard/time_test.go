package shard

import (
	"errors"
	"fmt"
	"io"
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
				if len(b.rang) != 1 || b.rang[0] < start+after || b.rang[0] > start+after+2*tick {
					t.Errorf("after %v: rang %v", after, b.rang)
				}
			}
			if stopped.rang != nil {
				t.Errorf("the stopped timer rang %v", stopped.rang)
			}
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
			if order != nil {
				t.Error("a task ran while the lock was held")
			}
		})
		synctest.Wait()
		h.do(func() {
			if fmt.Sprint(order) != "[0 1 2 3 4 10 11]" {
				t.Errorf("order: %v", order)
			}
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
		if waited := time.Since(began); waited < linger || waited > linger+time.Second {
			t.Errorf("waited %v", waited)
		}
		if h.noted("lost sent=true") != 1 {
			t.Errorf("told %q", h.events)
		}
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
		if reason := h.awaitEnd(l); !errors.Is(reason, io.EOF) {
			t.Errorf("reason: %v", reason)
		}
		if h.noted("lost sent=true") != 1 {
			t.Errorf("told %q", h.events)
		}
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
			if _, err := end.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("read: %v", err)
			}
		}
		h.awaitEnd(closed)
		h.awaitEnd(stopped)
		var after *Link
		ours, theirs := net.Pipe()
		h.do(func() { // a dial that began in Stop
			after = h.NewLink(h.config(false), service{h}, h)
			after.Attach(ours)
		})
		if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("read: %v", err)
		}
		if reason := h.awaitEnd(after); !errors.Is(reason, errStopped) {
			t.Errorf("reason: %v", reason)
		}
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
