package relay

import "time"

// work adds up for how long a call has had a slot: from the first grant to the
// end of the last, tries at the same time counted once.
type work struct {
	tries int // that have a slot now
	since time.Duration
	total time.Duration
	first time.Duration // from the grant to the first byte of the answer, of the try that has answered
	any   bool
	lost  bool // the last try ended with its worker, unanswered
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
