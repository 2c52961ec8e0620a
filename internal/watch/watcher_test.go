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
	testkit.Take(t, s.woken, 10*time.Second, "it sleeps on")
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
	n, err := nc.Read(make([]byte, 10))
	testkit.Need(t, n == 2 && err == nil, "%v %v", n, err)
	arm()
	peer.Close()
	s.await(t)
	testkit.Equal(t, len(s.woken), 0, "times woken more")
}

// A connection that was closed cannot be armed, and its number is another's.
func TestClosed(t *testing.T) {
	w, p, old, _, nc := watched(t)
	nc.Close()
	testkit.Want(t, p.Arm() != nil, "a closed connection was armed")
	young := newSleeper()
	peer, nc := testkit.TCPPair(t)
	next, err := w.Watch(nc, young)
	testkit.Must(t, err)
	p.Leave()
	testkit.Must(t, next.Arm())
	peer.Write([]byte("a"))
	young.await(t)
	testkit.Want(t, len(old.woken) == 0, "one that was closed was woken")
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
	_, err := w.Watch(a, newSleeper())
	testkit.Want(t, err != nil, "a pipe in memory was watched")
	w.Close()
}
