package socket

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// mostIdleReaders is how many goroutines may wait for work, each with 8 KiB.
const mostIdleReaders = 128

// ballast is how much of its stack a goroutine uses all of the time: a quarter of 8 KiB,
// below which the garbage collector would halve the stack. To grow it again for each
// message costs a tenth of a call.
const ballast = 2 << 10

// readerPool is goroutines that read from sockets, one at a time each. After a socket they
// wait for the next one: a new goroutine would have to grow its stack first.
//
// Life: newReaderPool, do, and close at the end.
// Concurrency: do may be called from anywhere, and does not block.
type readerPool struct {
	work  chan *session
	idle  atomic.Int32
	close func()
}

func newReaderPool() *readerPool {
	h := &readerPool{work: make(chan *session)}
	h.close = sync.OnceFunc(func() { close(h.work) })
	return h
}

func (h *readerPool) do(s *session) {
	select {
	case h.work <- s:
	default:
		go h.run(s) // ends when it is not needed, or by close
	}
}

func (h *readerPool) run(s *session) {
	var used [ballast]byte
	defer runtime.KeepAlive(&used)
	for ok := true; ok; {
		s.do()
		if h.idle.Add(1) > mostIdleReaders {
			h.idle.Add(-1)
			return
		}
		s, ok = <-h.work
		h.idle.Add(-1)
	}
}
