package relay

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/h2"
)

// wildConn is a connection whose writers take turns.
type wildConn struct {
	net.Conn
	mu     sync.Mutex // guards what framer writes
	framer *http2.Framer
}

func newWildConn(nc net.Conn) *wildConn {
	return &wildConn{Conn: nc, framer: http2.NewFramer(nc, nc)}
}

// write runs f with the framer. Errors are expected: either end may have gone.
func (c *wildConn) write(f func(*http2.Framer) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = f(c.framer)
}

func (c *wildConn) headers(stream uint32, last bool, block []byte) {
	c.write(func(f *http2.Framer) error {
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, EndStream: last, EndHeaders: true, BlockFragment: block})
	})
}

func (c *wildConn) data(stream uint32, last bool, size int) {
	for size > 0 || last {
		n := min(size, 16<<10)
		size -= n
		c.write(func(f *http2.Framer) error { return f.WriteData(stream, last && size == 0, make([]byte, n)) })
		if size == 0 {
			return
		}
	}
}

func (c *wildConn) reset(stream uint32, code http2.ErrCode) {
	c.write(func(f *http2.Framer) error { return f.WriteRSTStream(stream, code) })
}

// housekeeping answers what any peer must answer, and returns all credit.
func (c *wildConn) housekeeping(frame http2.Frame) {
	c.write(func(f *http2.Framer) error {
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				return f.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !frame.IsAck() {
				return f.WritePing(true, frame.Data)
			}
		case *http2.DataFrame:
			if n := frame.Length; n > 0 {
				_ = f.WriteWindowUpdate(frame.StreamID, n)
				return f.WriteWindowUpdate(0, n)
			}
		}
		return nil
	})
}

func block(kv ...string) (enc []byte) {
	for i := 0; i < len(kv); i += 2 {
		enc = h2.AppendField(enc, kv[i], kv[i+1])
	}
	return enc
}

// wildWorker answers calls as workers do on their worst day.
type wildWorker struct {
	ln    net.Listener
	conns sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]struct{}
	dice *rand.Rand
}

func newWildWorker(t *testing.T, seed uint64) *wildWorker {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wildWorker{ln: ln, open: map[net.Conn]struct{}{}, dice: rand.New(rand.NewPCG(seed, 1))}
	w.conns.Go(w.accept)
	t.Cleanup(w.close)
	return w
}

func (w *wildWorker) accept() {
	for {
		nc, err := w.ln.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		w.open[nc] = struct{}{}
		w.mu.Unlock()
		w.conns.Go(func() { w.serve(newWildConn(nc)) })
	}
}

func (w *wildWorker) close() {
	w.ln.Close()
	w.mu.Lock()
	for nc := range w.open {
		nc.Close()
	}
	w.mu.Unlock()
	w.conns.Wait()
}

func (w *wildWorker) roll(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dice.IntN(n)
}

func (w *wildWorker) serve(c *wildConn) {
	defer func() {
		w.mu.Lock()
		delete(w.open, c.Conn)
		w.mu.Unlock()
		c.Close()
	}()
	if _, err := io.CopyN(io.Discard, c, int64(len(http2.ClientPreface))); err != nil {
		return
	}
	c.write(func(f *http2.Framer) error { return f.WriteSettings(streamLimit(uint32(1 + w.roll(40)))) })
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return
		}
		c.housekeeping(frame)
		stream, ended := frame.Header().StreamID, frame.Header().Flags.Has(http2.FlagDataEndStream)
		switch frame.(type) {
		case *http2.HeadersFrame, *http2.DataFrame:
			if ended || w.roll(10) == 0 {
				w.act(c, stream)
			}
		}
	}
}

// act does something with a stream; doing nothing is one of the choices.
func (w *wildWorker) act(c *wildConn, stream uint32) {
	head := block(responseHead()...)
	refusal := block("grpc-status", "8", "grpc-message", rubyBusy)
	switch n := w.roll(100); {
	case n < 50:
		c.headers(stream, false, head)
		c.data(stream, false, w.roll(2000))
		c.headers(stream, true, block("grpc-status", "0"))
	case n < 58:
		c.headers(stream, false, head)
		c.data(stream, false, w.roll(60_000))
		c.headers(stream, true, block("grpc-status", "3"))
	case n < 66:
		c.headers(stream, true, append(head, refusal...))
	case n < 74:
		c.headers(stream, false, head)
		c.headers(stream, true, refusal)
	case n < 80:
		c.reset(stream, http2.ErrCodeRefusedStream)
	case n < 84:
		c.headers(stream, false, head)
		c.reset(stream, http2.ErrCodeInternal)
	case n < 86:
		c.data(stream, true, 10) // no HEADERS
	case n < 88:
		c.write(func(f *http2.Framer) error { return f.WriteGoAway(stream, http2.ErrCodeNo, nil) })
	case n < 89:
		c.write(func(f *http2.Framer) error { return f.WriteRawFrame(http2.FrameSettings, 0, 3, nil) })
	case n < 90:
		c.Close()
	case n < 94:
		c.headers(stream, false, head) // and nothing more
	}
}

// wildCaller makes calls and loses interest.
type wildCaller struct {
	addr string
	dice *rand.Rand
}

// run makes so many calls over one connection after another.
func (w *wildCaller) run(calls int) {
	for calls > 0 {
		n := min(calls, 50+w.dice.IntN(150))
		calls -= n
		w.connection(n)
	}
}

func (w *wildCaller) connection(calls int) {
	nc, err := net.Dial("tcp", w.addr)
	if err != nil {
		return // the relay has closed
	}
	c := newWildConn(nc)
	ended := make(chan uint32, calls)
	gone := make(chan struct{})
	go func() { defer close(gone); readEnds(c, ended) }() // ends with the connection
	defer func() { c.Close(); <-gone }()
	c.write(func(f *http2.Framer) error {
		_, _ = io.WriteString(nc, http2.ClientPreface)
		return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(w.dice.IntN(100_000))})
	})
	w.calls(c, calls, ended)
}

// calls opens streams, at most 30 at a time, and waits for them; sometimes it
// leaves in the middle.
func (w *wildCaller) calls(c *wildConn, calls int, ended <-chan uint32) {
	const most = 30
	open := map[uint32]bool{}
	for next := uint32(1); calls > 0 || len(open) > 0; {
		if calls > 0 && len(open) < most {
			if w.call(c, next) {
				open[next] = true
			}
			next += 2
			calls--
			if w.dice.IntN(300) == 0 {
				return
			}
			continue
		}
		stream, ok := <-ended
		if !ok {
			return
		}
		delete(open, stream)
	}
}

// call opens a stream and reports whether its end is to come.
func (w *wildCaller) call(c *wildConn, stream uint32) bool {
	path := []string{hello, hello, hello, hello, reflectPath, checkPath, watchPath}[w.dice.IntN(7)]
	list := request(path)
	// Whatever a worker does, each call ends with its deadline.
	list = append(list, "grpc-timeout", []string{"50m", "100m", "200m", "1n"}[w.dice.IntN(4)])
	size := 0
	if w.dice.IntN(3) > 0 {
		size = w.dice.IntN(60_000)
	}
	finish := w.dice.IntN(10) > 0
	c.headers(stream, finish && size == 0, block(list...))
	if size > 0 {
		c.data(stream, finish, size)
	}
	if w.dice.IntN(5) == 0 {
		c.reset(stream, http2.ErrCodeCancel)
		return false
	}
	return true
}

// readEnds tells which streams have ended, until the connection has.
func readEnds(c *wildConn, ended chan<- uint32) {
	defer close(ended)
	seen := map[uint32]bool{}
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return
		}
		c.housekeeping(frame)
		h := frame.Header()
		over := h.Type == http2.FrameRSTStream ||
			(h.Type == http2.FrameData || h.Type == http2.FrameHeaders) && h.Flags.Has(http2.FlagDataEndStream)
		if over && !seen[h.StreamID] {
			seen[h.StreamID] = true
			ended <- h.StreamID
		}
	}
}
