package rank

import (
	"slices"
	"time"
)

// pause is a number of slots of an endpoint that stay unused until an instant.
type pause struct {
	since    time.Duration // of a ghost: when its call was cancelled
	until    time.Duration
	endpoint *Endpoint
	slots    int
	ghostOf  *Account // of a ghost: whose cancelled call has the slot (R5)
	level    *level   // of that call
}

// pauses are all pauses, as a binary heap with the one that ends first on top.
//
// Cost: O(log n); O(n) to drop those of an endpoint.
type pauses []pause

func (p *pauses) push(x pause) {
	*p = append(*p, x)
	p.up(len(*p) - 1)
}

// pop takes out the pause that ends first.
func (p *pauses) pop() pause {
	h := *p
	first, last := h[0], len(h)-1
	h[0], h[last] = h[last], pause{}
	*p = h[:last]
	p.down(0)
	return first
}

// drop takes out all pauses of an endpoint, and calls gone for each before.
func (p *pauses) drop(e *Endpoint, gone func(pause)) {
	for _, x := range *p {
		if x.endpoint == e {
			gone(x)
		}
	}
	*p = slices.DeleteFunc(*p, func(x pause) bool { return x.endpoint == e })
	for i := len(*p)/2 - 1; i >= 0; i-- {
		p.down(i)
	}
}

func (p *pauses) up(i int) {
	h := *p
	for parent := (i - 1) / 2; i > 0 && h[i].until < h[parent].until; parent = (i - 1) / 2 {
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func (p *pauses) down(i int) {
	h := *p
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].until < h[first].until {
				first = child
			}
		}
		if first == i {
			return
		}
		h[i], h[first] = h[first], h[i]
		i = first
	}
}

// OnCancel says what happens to a slot whose call is cancelled while it runs (R5).
type OnCancel uint8

const (
	// Hold keeps the slot as a ghost: the worker's handler is expected to go on, as
	// handlers of Ruby and of Python's thread pool do.
	Hold OnCancel = iota + 1
	// Free gives the slot back at once: for workers that stop at a cancel.
	Free
	// Finish sends no cancel: the relay releases the lease when the worker has answered.
	// To the rank it is like Free.
	Finish
)

// String returns the word that configurations have for it; zero is auto.
func (o OnCancel) String() string { return [...]string{"auto", "hold", "free", "finish"}[o] }

const (
	// ghostUnknown is the run time that a call of an unknown method is taken to have.
	ghostUnknown = time.Second
	// ghostLate bounds how long a slot is held for a call that is older than nearly all
	// calls of its method.
	ghostLate = time.Second
	// ghostMost bounds how long a ghost can hold a slot.
	ghostMost = 30 * time.Second
)

// holdGhost decides about the slot of a call that is cancelled at now: a ghost holds it
// until nearly all calls of its method would have ended (R5), or it is free at once.
func (r *Rank) holdGhost(l Lease, now time.Duration) (until time.Duration, ghost bool) {
	e := l.ticket.endpoint
	how := l.ticket.Request.OnCancel
	if how == 0 {
		how = e.onCancel
	}
	if how != Hold {
		return now, false
	}
	if until = l.ticket.at + l.ticket.ghostAge(now-l.ticket.at); until > now {
		r.counts.decided[heldGhost]++
		return until, true
	}
	e.doubts++
	return now, false
}

// ghostAge is the run time that a cancelled call of the given age is taken to have:
// nearly all calls of its method end before that. A call that has run for longer
// already is expected to go on for a quarter of its age, at most a second, unless it is
// a long call, which its caller ends.
func (t *Ticket) ghostAge(age time.Duration) time.Duration {
	most := ghostUnknown
	if m := t.method; m.known() {
		most = min(time.Duration(m.p95.Load()), ghostMost)
	}
	if t.long {
		return most
	}
	return max(most, age+min(age/4, ghostLate))
}
