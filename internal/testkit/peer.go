package testkit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// patience bounds one verb. It only decides when a hang is called a
	// failure; in a synctest bubble it passes at once.
	patience = 30 * time.Second
	// readAhead bounds the frames that wait for a verb; a test that leaves
	// more unread exerts backpressure, as a slow peer does.
	readAhead = 4096
	// remembered bounds the transcript that a failure prints.
	remembered = 40
)

// Peer is one end of an HTTP/2 connection that does only what a test tells it:
// verbs that write frames, and verbs that say which frame must come next.
// Nothing is answered or acknowledged unasked, except by Greet.
//
// Order: by default every Want verb takes the very next frame, whatever its
// stream, and anything else fails the test; Skip and AnyOrder loosen that.
//
// Errors: a verb that is disappointed, or waits for more than 30 s, fails the
// test with what came instead and a transcript of both directions.
//
// Concurrency: verbs belong to one goroutine. Credit may be called from any.
// The Peer and its connection are closed at the end of the test.
type Peer struct {
	t    testing.TB
	conn net.Conn
	role string // "caller" or "worker", for messages

	// owned by the goroutine of the verbs
	pending  []Frame
	skip     map[Kind]bool
	anyOrder bool
	refill   bool
	fragile  bool
	dribble  int // most bytes in one Write, 0 without bound
	held     bytes.Buffer
	batching bool
	framer   *http2.Framer // writes into held
	encoder  *hpack.Encoder
	block    bytes.Buffer // what encoder writes into
	sent     map[uint32]int64
	pings    byte

	// shared with the reader
	frames chan Frame
	gate   *gate
	stop   chan struct{}
	gone   chan struct{} // closed when the reader has ended

	mu         sync.Mutex
	credit     map[uint32]int64
	initial    int64 // the other side's SETTINGS_INITIAL_WINDOW_SIZE
	transcript []string
}

// NewCaller makes the client end of conn. Nothing is sent before the first
// verb; usually that is Greet.
func NewCaller(t testing.TB, conn net.Conn) *Peer {
	t.Helper()
	return newPeer(t, conn, "caller")
}

// NewWorker makes the server end of conn. The client's preface is read and
// checked; nothing is sent before the first verb, usually Greet.
func NewWorker(t testing.TB, conn net.Conn) *Peer {
	t.Helper()
	return newPeer(t, conn, "worker")
}

func newPeer(t testing.TB, conn net.Conn, role string) *Peer {
	t.Helper()
	p := &Peer{
		t: t, conn: conn, role: role,
		skip:    map[Kind]bool{},
		sent:    map[uint32]int64{},
		frames:  make(chan Frame, readAhead),
		gate:    newGate(conn),
		stop:    make(chan struct{}),
		gone:    make(chan struct{}),
		credit:  map[uint32]int64{},
		initial: 65535, // RFC 9113, 6.9.2
	}
	p.framer = http2.NewFramer(&p.held, nil)
	p.framer.AllowIllegalWrites = true
	p.encoder = hpack.NewEncoder(&p.block)
	go p.read() // ended and awaited by Close
	t.Cleanup(p.Close)
	return p
}

// Close closes the connection and waits for the reader. It may be called more
// than once; the end of the test calls it too.
func (p *Peer) Close() {
	select {
	case <-p.stop:
	default:
		close(p.stop)
		p.gate.open()
		p.conn.Close()
	}
	<-p.gone
}

// read runs until the connection ends or the Peer is closed. Behind bytes that
// are no frame it reads on without looking, so that no sender hangs.
func (p *Peer) read() {
	defer close(p.gone)
	p.readFrames()
	io.Copy(io.Discard, p.gate) //nolint:errcheck // whatever ends it
}

func (p *Peer) readFrames() {
	if p.role == "worker" {
		if err := preface(p.gate); err != nil {
			p.deliver(Frame{Kind: Closed, Err: err})
			return
		}
	}
	r := newFrameReader(p.gate)
	for {
		f := r.next()
		if !p.deliver(f) || f.Kind == Closed {
			return
		}
	}
}

func (p *Peer) deliver(f Frame) bool {
	p.account(f)
	p.note("<-", f.String())
	select {
	case p.frames <- f:
		return true
	case <-p.stop:
		return false
	}
}

// account keeps the credit that the other side has given so far.
func (p *Peer) account(f Frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.Kind == WindowUpdate {
		p.credit[f.Stream] += int64(f.Incr)
	}
	for _, s := range f.Settings {
		if s.ID == http2.SettingInitialWindowSize {
			p.initial = int64(s.Val)
		}
	}
}

// Credit returns the sum of the WINDOW_UPDATE increments that were read for a
// stream (0: the connection), also of those that were skipped or not wanted
// yet. The initial window is not part of it.
func (p *Peer) Credit(stream uint32) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.credit[stream]
}

// Skip drops frames of these kinds instead of failing a verb that wants
// another kind. The verb that wants such a kind still finds it.
func (p *Peer) Skip(kinds ...Kind) {
	for _, k := range kinds {
		p.skip[k] = true
	}
}

// AnyOrder lets a verb pass over frames of other streams and leaves them to
// later verbs; the order within a stream is still checked. Frames of the
// connection are each a stream of their own in this respect.
func (p *Peer) AnyOrder() { p.anyOrder = true }

// Refill returns the bytes of every DATA frame that a verb takes, at once, to
// the windows of its stream and of the connection.
func (p *Peer) Refill() { p.refill = true }

// Fragile lets writes fail in silence: the other side is expected to close the
// connection while the test still sends (floods, protocol errors).
func (p *Peer) Fragile() { p.fragile = true }

// Dribble cuts what is sent from now on into writes of at most n bytes; 0 ends
// it. Over net.Pipe the other side then reads exactly these pieces.
func (p *Peer) Dribble(n int) { p.dribble = n }

// Batch holds what the verbs in script write and sends it in one Write.
func (p *Peer) Batch(script func()) {
	p.t.Helper()
	p.batching = true
	script()
	p.batching = false
	p.flush()
}

// StopReading leaves whatever comes from now on in the connection, as a peer
// does that has stopped to read. ReadAgain ends it.
func (p *Peer) StopReading() { p.gate.shut() }

// ReadAgain ends StopReading.
func (p *Peer) ReadAgain() { p.gate.open() }

func (p *Peer) note(direction, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.transcript) == remembered {
		p.transcript = append(p.transcript[:0], p.transcript[1:]...)
	}
	p.transcript = append(p.transcript, direction+" "+text)
}

// fail ends the test with the reason and the transcript.
func (p *Peer) fail(format string, args ...any) {
	p.t.Helper()
	p.mu.Lock()
	lines := strings.Join(p.transcript, "\n\t")
	p.mu.Unlock()
	p.t.Fatalf("%s: %s\nlast frames (-> sent, <- read):\n\t%s", p.role, fmt.Sprintf(format, args...), lines)
}

// gate is a reader that can be shut while a read is blocked in it.
type gate struct {
	conn net.Conn
	mu   sync.Mutex
	wait chan struct{} // nil while open
}

func newGate(conn net.Conn) *gate { return &gate{conn: conn} }

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wait == nil {
		g.wait = make(chan struct{})
		g.conn.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // wakes the reader; a dead connection wakes it too
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wait != nil {
		g.conn.SetReadDeadline(time.Time{}) //nolint:errcheck // see shut
		close(g.wait)
		g.wait = nil
	}
}

// Read reads from the connection while the gate is open.
func (g *gate) Read(b []byte) (int, error) {
	for {
		g.mu.Lock()
		wait := g.wait
		g.mu.Unlock()
		if wait != nil {
			<-wait
			continue
		}
		n, err := g.conn.Read(b)
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			continue // shut while reading: nobody else sets a read deadline
		}
		return n, err
	}
}
