package relay

import "time"

// work adds up the time in which a call has a slot. Attempts at the same time count once.
type work struct {
	tries int // attempts with a slot now
	since time.Duration
	total time.Duration
	first time.Duration // from the grant to the first byte of the answer, of the attempt that answered
	any   bool
	lost  bool // the last attempt ended unanswered with its worker's connection
}

func (w *work) begin(at time.Duration) {
	if w.tries == 0 {
		w.since = at
	}
	w.tries++
	w.any = true
}

func (w *work) end(now time.Duration) {
	if w.tries--; w.tries == 0 {
		w.total += max(now-w.since, 0)
	}
}
