package socket

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// mostIdleHands is how many goroutines wait for something to do, each with 8 KiB.
const mostIdleHands = 128

// ballast is what of its stack a hand uses all of the time: a quarter of 8 KiB, below
// which the garbage collector would halve it. To have it grow again for each message
// costs a tenth of what a call does.
const ballast = 2 << 10

// hands are goroutines that read from sockets, one at a time each. Those that have read
// wait for more: a new one would have to make its stack larger first.
//
// Life: newHands, do, and close when nothing more is to be done.
// Concurrency: do may be called from anywhere, and does not block.
type hands struct {
	work  chan *session
	idle  atomic.Int32
	close func()
}

func newHands() *hands {
	h := &hands{work: make(chan *session)}
	h.close = sync.OnceFunc(func() { close(h.work) })
	return h
}

func (h *hands) do(s *session) {
	select {
	case h.work <- s:
	default:
		go h.run(s) // ends when it is not needed, or by close
	}
}

func (h *hands) run(s *session) {
	var used [ballast]byte
	defer runtime.KeepAlive(&used)
	for ok := true; ok; {
		s.do()
		if h.idle.Add(1) > mostIdleHands {
			h.idle.Add(-1)
			return
		}
		s, ok = <-h.work
		h.idle.Add(-1)
	}
}
