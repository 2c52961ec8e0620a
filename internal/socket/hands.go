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

// hands are goroutines that do what comes up, one thing each. Those that have done
// something wait for more: a new one would have to make its stack larger first.
//
// Life: newHands, do, and close when nothing more is to be done.
// Concurrency: do may be called from anywhere, and does not block.
type hands struct {
	work  chan task
	idle  atomic.Int32
	close func()
}

// task is something to be done.
type task interface{ do() }

func newHands() *hands {
	h := &hands{work: make(chan task)}
	h.close = sync.OnceFunc(func() { close(h.work) })
	return h
}

func (h *hands) do(t task) {
	select {
	case h.work <- t:
	default:
		go h.run(t) // ends when it is not needed, or by close
	}
}

func (h *hands) run(t task) {
	var used [ballast]byte
	defer runtime.KeepAlive(&used)
	for ok := true; ok; {
		t.do()
		if h.idle.Add(1) > mostIdleHands {
			h.idle.Add(-1)
			return
		}
		t, ok = <-h.work
		h.idle.Add(-1)
	}
}
