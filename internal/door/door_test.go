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
	testkit.Is(t, <-served, ErrClosed, "Serve")
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
		testkit.Is(t, <-served, io.ErrUnexpectedEOF, "Serve")
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
	ln := testkit.Listen(t)
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
	testkit.Equal(t, in.count(), waiting, "served of %d", waiting)
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
	ln := testkit.Listen(t)
	shared := leaving{ln.(*net.TCPListener), func() { dial(t, ln.Addr()) }}
	d, in, served := open(shared)
	dial(t, ln.Addr())
	testkit.Eventually(t, soon, "the first", func() bool { return in.count() == 1 })
	began := time.Now()
	d.Drain()
	wantClosed(t, served)
	took := time.Since(began)
	testkit.Want(t, took >= 3*backlogTime, "it was left after %v", took)
	testkit.Equal(t, in.count(), 2, "served")
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
	_, err = os.Stat(path)
	testkit.Want(t, err == nil, "%v", err)
	dial(t, ln.Addr()) // the kernel takes it for the other process
}

// A door that has closed takes no further listener.
func TestServeAfterClose(t *testing.T) {
	d := New(new(guests), slog.New(slog.DiscardHandler))
	d.Close()
	ln := testkit.Listen(t)
	testkit.Is(t, d.Serve(ln), ErrClosed, "Serve")
	if conn, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		conn.Close()
		t.Error("somebody still listens")
	}
}

func TestKindOf(t *testing.T) {
	for first, want := range map[string]Kind{
		"":                                 Unknown,
		"GET / HTTP/1.1\r\nHost: x\r\n":    HTTP1,
		"GET / HTTP/1.0\n":                 HTTP1,
		"P":                                HTTP1,
		"POST /a.very.long/path":           HTTP1,
		"PRI * HTTP/1.1\r\n":               HTTP1,
		"PRI * HTTP/2.0\r\n\r\nsm":         Unknown,
		"INVALID CONNECTION PREFACE\r\n":   Unknown,
		"get / http/1.1\r\n":               Unknown,
		"\x16":                             TLS,
		"\x16\x03\x01\x02\x00\x01\x00\n":   TLS,
		"\x00\x01\x02":                     Unknown,
		"\n":                               Unknown,
		"*3\r\n$3\r\nSET\r\n HTTP/1.1\r\n": Unknown,
	} {
		testkit.Equal(t, KindOf([]byte(first)), want, "%q", first)
	}
}

// An annex hands on what it is given as long as it is open, and closes it afterwards.
func TestAnnex(t *testing.T) {
	a := NewAnnex()
	ours, theirs := net.Pipe()
	go a.ServeConn(ours) // ends with Accept
	nc, err := a.Accept()
	testkit.Need(t, err == nil && nc == ours, "accepted %v, %v", nc, err)
	_ = a.Close()
	_ = a.Close() // once more changes nothing
	_, err = a.Accept()
	testkit.Want(t, errors.Is(err, net.ErrClosed), "Accept: %v", err)
	a.ServeConn(nc)
	_, err = theirs.Read(make([]byte, 1))
	testkit.Want(t, err != nil, "the connection lives on")
}

// No test leaves a goroutine or a listener behind.
func TestMain(m *testing.M) { testkit.VerifyMain(m) }
