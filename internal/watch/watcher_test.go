//go:build linux

package watch

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyMain(m) }

// sleeper counts how often it was woken.
type sleeper struct{ woken chan struct{} }

func newSleeper() *sleeper { return &sleeper{make(chan struct{}, 100)} }

func (s *sleeper) Wake() { s.woken <- struct{}{} }

func (s *sleeper) await(t *testing.T) {
	t.Helper()
	select {
	case <-s.woken:
	case <-time.After(10 * time.Second):
		t.Fatal("it sleeps on")
	}
}

func watched(t *testing.T) (w *Watcher, p *Post, s *sleeper, peer, nc net.Conn) {
	t.Helper()
	w, s = &Watcher{}, newSleeper()
	peer, nc = testkit.TCPPair(t)
	p, err := w.Watch(nc, s)
	testkit.Must(t, err)
	t.Cleanup(w.Close)
	return w, p, s, peer, nc
}

// A sleeper is woken once for each Arm, by what comes, by what had come, and by the end.
func TestArm(t *testing.T) {
	_, p, s, peer, nc := watched(t)
	arm := func() {
		t.Helper()
		testkit.Must(t, p.Arm())
	}
	arm()
	peer.Write([]byte("a"))
	s.await(t)
	peer.Write([]byte("b"))
	arm()
	s.await(t)
	if n, err := nc.Read(make([]byte, 10)); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	arm()
	peer.Close()
	s.await(t)
	if n := len(s.woken); n != 0 {
		t.Errorf("woken %d times more", n)
	}
}

// A connection that was closed cannot be armed, and its number is another's.
func TestClosed(t *testing.T) {
	w, p, old, _, nc := watched(t)
	nc.Close()
	if p.Arm() == nil {
		t.Error("a closed connection was armed")
	}
	young := newSleeper()
	peer, nc := testkit.TCPPair(t)
	next, err := w.Watch(nc, young)
	testkit.Must(t, err)
	p.Leave()
	testkit.Must(t, next.Arm())
	peer.Write([]byte("a"))
	young.await(t)
	if len(old.woken) > 0 {
		t.Error("one that was closed was woken")
	}
}

// Many at once are all woken.
func TestMany(t *testing.T) {
	w := &Watcher{}
	t.Cleanup(w.Close)
	var all sync.WaitGroup
	for range 3 * batch {
		peer, nc := testkit.TCPPair(t)
		s := newSleeper()
		p, err := w.Watch(nc, s)
		testkit.Must(t, err)
		testkit.Must(t, p.Arm())
		all.Go(func() {
			peer.Write([]byte("a"))
			s.await(t)
		})
	}
	all.Wait()
}

// What has no descriptor is not watched, and costs nothing.
func TestWithoutDescriptor(t *testing.T) {
	w := &Watcher{}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if _, err := w.Watch(a, newSleeper()); err == nil {
		t.Error("a pipe in memory was watched")
	}
	w.Close()
}
