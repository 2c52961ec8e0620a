package ranksim

import "time"

// happening is what an event tells its subject.
type happening uint8

const (
	answers  happening = iota // a handler has come to its end
	frees                     // its thread is free
	refuses                   // a worker's refusal has come back
	gives                     // a call's alarm: its caller gives up, or its queue timeout ends
	hedges                    // a call has run for so long that a second try may start
	comes                     // a call of a loop comes
	fails                     // a worker is out
	recovers                  // it is back
)

// event is one thing that is going to happen.
type event struct {
	at    time.Duration
	order uint64 // of events at the same instant the one that was set first comes first
	what  happening
	uses  uint32 // tells whether visit or run is still the one that was meant
	visit *visit // of gives, hedges and refuses
	run   *run   // of answers, frees and refuses

	call   int     // of comes
	worker *worker // of fails and recovers
	killed bool    // of these
}

// events is a binary heap by instant.
type events struct {
	heap []event
	set  uint64 // events so far
}

func (e *event) before(o *event) bool {
	return e.at < o.at || (e.at == o.at && e.order < o.order)
}

// add sets an event.
func (q *events) add(e event) {
	q.set++
	e.order = q.set
	q.heap = append(q.heap, e)
	i := len(q.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e.before(&q.heap[up]) {
			break
		}
		q.heap[i] = q.heap[up]
		i = up
	}
	q.heap[i] = e
}

// next returns the instant of the first event, or forever.
func (q *events) next() time.Duration {
	if len(q.heap) == 0 {
		return forever
	}
	return q.heap[0].at
}

// pop takes out the first event; there is one.
func (q *events) pop() event {
	first := q.heap[0]
	n := len(q.heap) - 1
	last := q.heap[n]
	q.heap[n] = event{}
	q.heap = q.heap[:n]
	if n == 0 {
		return first
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= n {
			break
		}
		if down+1 < n && q.heap[down+1].before(&q.heap[down]) {
			down++
		}
		if !q.heap[down].before(&last) {
			break
		}
		q.heap[i] = q.heap[down]
		i = down
	}
	q.heap[i] = last
	return first
}
