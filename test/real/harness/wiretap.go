package harness

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Wiretap passes connections on to an address and counts the HTTP/2 frames in
// both directions: what went over the wire, whatever the programs at its ends
// make of it.
//
// Concurrency: methods may be called from anywhere.
type Wiretap struct {
	Addr string // where to connect

	t       testing.TB
	network string // what it passes on to
	target  string
	serving sync.WaitGroup

	mu    sync.Mutex
	over  bool // the test is
	conns []*tapped
}

// tapped is one connection. Its counts are guarded by the lock of the wiretap.
type tapped struct {
	tap    *Wiretap
	began  time.Time
	ends   [2]net.Conn
	up     [256]int // frames from the client, by type
	down   [256]int // frames to the client
	faults []string // resets beyond R14's budget
}

// Tap listens on a free port of the loopback address and passes on to
// "HOST:PORT" or "unix:/path", until the end of the test.
func Tap(t testing.TB, address string) *Wiretap {
	t.Helper()
	ln := testkit.Listen(t)
	w := &Wiretap{t: t, Addr: ln.Addr().String(), network: "tcp", target: address}
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		w.network, w.target = "unix", path
	}
	w.serving.Go(func() { w.serve(ln) })
	t.Cleanup(func() {
		ln.Close()
		w.cut()
		w.serving.Wait()
	})
	return w
}

func (w *Wiretap) serve(ln net.Listener) {
	for {
		client, err := ln.Accept()
		if err != nil {
			return
		}
		w.serving.Go(func() { w.pass(client) })
	}
}

// pass runs until both ends have finished.
func (w *Wiretap) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial(w.network, w.target)
	if err != nil {
		w.t.Logf("wiretap: %v", err) // the client sees its connection end
		return
	}
	defer server.Close()
	c := &tapped{tap: w, began: time.Now(), ends: [2]net.Conn{client, server}}
	if !w.add(c) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { relayBytes(server, client, &frameCounter{count: c.fromClient, skip: len(http2.ClientPreface)}) })
	both.Go(func() { relayBytes(client, server, &frameCounter{count: c.toClient}) })
	both.Wait()
}

// add reports false when the test is over.
func (w *Wiretap) add(c *tapped) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, c)
	return !w.over
}

// cut ends all connections: some peers wait for the other for ever.
func (w *Wiretap) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	for _, c := range w.conns {
		for _, end := range c.ends {
			_ = end.Close() // most are closed already
		}
	}
}

// relayBytes copies until the end of from and then half-closes to.
func relayBytes(to, from net.Conn, count *frameCounter) {
	_, err := io.Copy(io.MultiWriter(count, to), from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite() // it may be gone
		return
	}
	_ = to.Close()
	_ = from.Close()
}

func (c *tapped) fromClient(kind http2.FrameType) {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	c.up[kind]++
	age := time.Since(c.began)
	if bound := 800 + 25*age.Seconds(); kind == http2.FrameRSTStream && float64(c.up[kind]) > bound {
		c.faults = append(c.faults, fmt.Sprintf("%d resets after %v", c.up[kind], age))
	}
}

func (c *tapped) toClient(kind http2.FrameType) {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	if kind == http2.FrameGoAway && c.up[kind] > 0 {
		return // the answer to the client's own
	}
	c.down[kind]++
}

// sum adds something up over all connections so far.
func (w *Wiretap) sum(of func(*tapped) int) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		n += of(c)
	}
	return n
}

// Opened counts the connections.
func (w *Wiretap) Opened() int { return w.sum(func(*tapped) int { return 1 }) }

// Resets counts the RST_STREAM frames that clients have sent.
func (w *Wiretap) Resets() int {
	return w.sum(func(c *tapped) int { return c.up[http2.FrameRSTStream] })
}

// GoAways counts the GOAWAY frames that clients were sent, and had sent none themselves.
func (w *Wiretap) GoAways() int {
	return w.sum(func(c *tapped) int { return c.down[http2.FrameGoAway] })
}

// overdrawn returns what went beyond 800 resets and 25 a second, by connection.
func (w *Wiretap) overdrawn() (faults []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		faults = append(faults, c.faults...)
	}
	return faults
}

// frameCounter is a writer that finds the frames in what passes through it.
type frameCounter struct {
	count func(http2.FrameType)
	skip  int    // bytes until the next frame header
	head  []byte // what there is of it
}

// Write implements io.Writer.
func (f *frameCounter) Write(p []byte) (int, error) {
	const headerLen = 9 // RFC 9113, 4.1
	all := len(p)
	for len(p) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(p))
			f.skip, p = f.skip-n, p[n:]
			continue
		}
		n := min(headerLen-len(f.head), len(p))
		f.head, p = append(f.head, p[:n]...), p[n:]
		if len(f.head) == headerLen {
			length := binary.BigEndian.Uint32(f.head) >> 8
			if length > 1<<20 {
				return 0, errors.New("no HTTP/2 passes through here")
			}
			f.skip = int(length)
			f.count(http2.FrameType(f.head[3]))
			f.head = f.head[:0]
		}
	}
	return all, nil
}
