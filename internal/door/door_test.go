package door

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

const soon = 30 * time.Second

// guests is a Server that counts what it is given, and closes it.
type guests struct {
	mu sync.Mutex
	n  int
}

func (g *guests) ServeConn(nc net.Conn) {
	_ = nc.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n++
}

func (g *guests) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.n
}

// open returns a door that accepts on ln, and what Serve will return.
func open(ln net.Listener) (d *Door, in *guests, served chan error) {
	in = new(guests)
	d, served = New(in, slog.New(slog.DiscardHandler)), make(chan error, 1)
	go func() { served <- d.Serve(ln) }() // ended by the end of the door, or of ln
	return d, in, served
}

func wantClosed(t *testing.T, served chan error) {
	t.Helper()
	if err := <-served; !errors.Is(err, ErrClosed) {
		t.Errorf("Serve: %v", err)
	}
}

func dial(t *testing.T, at net.Addr) {
	t.Helper()
	conn, err := net.Dial(at.Network(), at.String())
	testkit.Must(t, err)
	t.Cleanup(func() { conn.Close() })
}

// brokenListener fails in a row of ways.
type brokenListener struct {
	net.Listener
	errs []error
}

func (l *brokenListener) Accept() (net.Conn, error) {
	err := l.errs[0]
	l.errs = l.errs[1:]
	return nil, err
}

func (l *brokenListener) Close() error { return nil }

// Out of descriptors the door waits; any other error of a listener is told.
func TestServeErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		full := &net.OpError{Op: "accept", Err: syscall.EMFILE}
		_, _, served := open(&brokenListener{errs: []error{full, full, full, io.ErrUnexpectedEOF}})
		if err := <-served; !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("Serve: %v", err)
		}
		if took := time.Since(began); took != 35*time.Millisecond { // 5, 10, 20
			t.Errorf("it took %v", took)
		}
	})
}

// slowStart keeps its door from accepting until it is let go.
type slowStart struct {
	*net.TCPListener
	start chan struct{}
}

func (l slowStart) Accept() (net.Conn, error) {
	<-l.start
	return l.TCPListener.Accept()
}

// R17: a drain takes what the kernel has accepted already, and then nobody.
func TestDrainTakesTheBacklog(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	slow := slowStart{ln.(*net.TCPListener), make(chan struct{})}
	d, in, served := open(slow)
	const waiting = 20
	for range waiting {
		dial(t, ln.Addr())
	}
	testkit.Eventually(t, soon, "the listener to be known", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.listeners) == 1
	})
	close(slow.start)
	d.Drain()
	wantClosed(t, served)
	if n := in.count(); n != waiting {
		t.Errorf("%d of %d were served", n, waiting)
	}
	if conn, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		conn.Close()
		t.Error("somebody still listens")
	}
	d.Drain() // once more changes nothing
	d.Close()
}

// leaving is a listener on a port that others share; one more comes while it leaves.
type leaving struct {
	*net.TCPListener
	left func()
}

func (l leaving) Leave() time.Duration {
	l.left()
	return 3 * backlogTime
}

// R17: one that shares its port keeps new callers away first, and takes for as long
// as it says those that were begun.
func TestDrainLeavesASharedPort(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	shared := leaving{ln.(*net.TCPListener), func() { dial(t, ln.Addr()) }}
	d, in, served := open(shared)
	dial(t, ln.Addr())
	testkit.Eventually(t, soon, "the first", func() bool { return in.count() == 1 })
	began := time.Now()
	d.Drain()
	wantClosed(t, served)
	if took := time.Since(began); took < 3*backlogTime {
		t.Errorf("it was left after %v", took)
	}
	if n := in.count(); n != 2 {
		t.Errorf("%d were served, want 2", n)
	}
}

// R20: a socket that is released goes on to exist in another process, its path
// included.
func TestRelease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "door")
	ln, err := net.Listen("unix", path)
	testkit.Must(t, err)
	file, err := ln.(*net.UnixListener).File()
	testkit.Must(t, err)
	defer file.Close()
	d, in, served := open(ln)
	dial(t, ln.Addr())
	testkit.Eventually(t, soon, "the first", func() bool { return in.count() == 1 })
	d.Release()
	wantClosed(t, served)
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	dial(t, ln.Addr()) // the kernel takes it for the other process
}

// A door that has closed takes no further listener.
func TestServeAfterClose(t *testing.T) {
	d := New(new(guests), slog.New(slog.DiscardHandler))
	d.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	if err := d.Serve(ln); !errors.Is(err, ErrClosed) {
		t.Errorf("Serve: %v", err)
	}
	if conn, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		conn.Close()
		t.Error("somebody still listens")
	}
}
