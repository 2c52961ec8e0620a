package relay

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cabrank/cabrank/internal/h2"
)

func block(kv ...string) (enc []byte) {
	for i := 0; i < len(kv); i += 2 {
		enc = h2.AppendField(enc, kv[i], kv[i+1])
	}
	return enc
}

// scribble has the far end write a frame by chance: most of them end the connection.
func (f *far) scribble(dice func(n int) int, lists [][]string) {
	s := make(script, 12)
	for i := range s {
		s[i] = byte(dice(256))
	}
	f.write(&s, lists)
}

// wildWorker answers calls as workers do on their worst day.
type wildWorker struct {
	t     testing.TB
	ln    net.Listener
	conns sync.WaitGroup

	mu   sync.Mutex
	dice *rand.Rand
}

func newWildWorker(t *testing.T, seed uint64) *wildWorker {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wildWorker{t: t, ln: ln, dice: rand.New(rand.NewPCG(seed, 1))}
	context.AfterFunc(t.Context(), func() { ln.Close() })
	w.conns.Go(w.accept)
	t.Cleanup(w.conns.Wait)
	return w
}

func (w *wildWorker) accept() {
	for {
		nc, err := w.ln.Accept()
		if err != nil {
			return
		}
		w.conns.Go(func() { w.serve(nc) })
	}
}

func (w *wildWorker) roll(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dice.IntN(n)
}

func (w *wildWorker) serve(nc net.Conn) {
	defer nc.Close()
	defer context.AfterFunc(w.t.Context(), func() { nc.Close() })()
	f := farOf(w.t, true, nc)
	heard := func(s *judged, end bool) {
		if end || w.roll(10) == 0 {
			w.act(f, s.id)
		}
	}
	f.onHeaders = func(s *judged, _ []hpack.HeaderField, end bool) { heard(s, end) }
	f.onData = func(s *judged, _ []byte, end bool) { heard(s, end) }
	f.do(func() { f.greet(streamLimit(uint32(1 + w.roll(40)))) })
	f.read()
}

// act does something with a stream; doing nothing is one of the choices.
func (w *wildWorker) act(f *far, stream uint32) {
	refusal := []string{"grpc-status", "8", "grpc-message", rubyBusy}
	switch n := w.roll(100); {
	case n < 50:
		f.headers(stream, false, responseHead()...)
		f.data(stream, false, w.roll(2000))
		f.headers(stream, true, "grpc-status", "0")
	case n < 58:
		f.headers(stream, false, responseHead()...)
		f.data(stream, false, w.roll(60_000))
		f.headers(stream, true, "grpc-status", "3")
	case n < 66:
		f.headers(stream, true, append(responseHead(), refusal...)...)
	case n < 74:
		f.headers(stream, false, responseHead()...)
		f.headers(stream, true, refusal...)
	case n < 80:
		_ = f.framer.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
	case n < 84:
		f.headers(stream, false, responseHead()...)
		_ = f.framer.WriteRSTStream(stream, http2.ErrCodeInternal)
	case n < 86:
		_ = f.framer.WriteGoAway(stream, http2.ErrCodeNo, nil)
	case n < 89:
		f.scribble(w.roll, answersOf())
	case n < 90:
		f.nc.Close()
	case n < 94:
		f.headers(stream, false, responseHead()...) // and nothing more
	}
}

// wildCaller makes calls and loses interest.
type wildCaller struct {
	t    testing.TB
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
	f := farOf(w.t, false, nc)
	ended := make(chan struct{}, calls) // once for each call that is waited for
	over := func(s *judged, end bool) {
		if end && !s.answered {
			s.answered = true
			ended <- struct{}{}
		}
	}
	f.onHeaders = func(s *judged, _ []hpack.HeaderField, end bool) { over(s, end) }
	f.onData = func(s *judged, _ []byte, end bool) { over(s, end) }
	f.onReset = func(s *judged) { over(s, true) }
	f.do(func() { f.greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(w.dice.IntN(100_000))}) })
	go func() { defer close(ended); f.read() }() // ends with the connection
	w.calls(f, calls, ended)
	nc.Close()
	for range ended { // until it has ended
	}
}

// calls opens streams, at most 30 at a time, and waits for them; sometimes it
// leaves in the middle.
func (w *wildCaller) calls(f *far, calls int, ended <-chan struct{}) {
	const most = 30
	for open := 0; calls > 0 || open > 0; {
		if calls > 0 && open < most {
			if w.call(f) {
				open++
			}
			calls--
			switch w.dice.IntN(600) {
			case 0:
				f.do(func() { f.scribble(w.dice.IntN, requests()) })
				return
			case 1:
				return
			}
			continue
		}
		if _, ok := <-ended; !ok {
			return
		}
		open--
	}
}

// call opens a stream and reports whether its end is to come.
func (w *wildCaller) call(f *far) (ends bool) {
	path := []string{hello, hello, hello, hello, reflectPath, checkPath, watchPath}[w.dice.IntN(7)]
	// Whatever a worker does, each call ends with its deadline.
	list := append(request(path), "grpc-timeout", []string{"50m", "100m", "200m", "1n"}[w.dice.IntN(4)])
	size := 0
	if w.dice.IntN(3) > 0 {
		size = w.dice.IntN(60_000)
	}
	finish, leaves := w.dice.IntN(10) > 0, w.dice.IntN(5) == 0
	f.do(func() {
		stream := f.next
		f.next += 2
		f.headers(stream, finish && size == 0, list...)
		if size > 0 {
			f.data(stream, finish, size)
		}
		if leaves {
			f.flush()
			f.streams[stream].answered = true // its end is not waited for
			_ = f.framer.WriteRSTStream(stream, http2.ErrCodeCancel)
		}
	})
	return !leaves
}
