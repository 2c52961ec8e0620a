package rank

import "time"

// Order makes an empty line; a rank calls it once for each queue it keeps. It
// is one of the three replaceable functions of the rank (R21).
type Order func() Line

// Line holds the waiting tickets and decides who is served next.
//
// Concurrency: all methods run under the rank's lock; they do not block and do
// not call the rank. A ticket is in at most one line, and at most once.
// Bounds: the rank counts the tickets and bounds them; each method should cost
// O(log n) at worst.
type Line interface {
	// Join puts t in. Tail is for a newcomer, Head for a call that was put
	// back: it goes before everyone of its kind that has not had a slot.
	Join(t *Ticket, at Place)
	// Pop takes out the ticket that is served now. It is called only when a
	// slot is free and at least one ticket is in, and then returns one.
	Pop(now time.Duration) *Ticket
	// Remove takes out t, which is in and gives up its place.
	Remove(t *Ticket)
}

// Place is the end of a line at which a ticket joins.
type Place uint8

const (
	// Tail is behind everyone else.
	Tail Place = iota + 1
	// Head is before everyone who has not had a slot yet.
	Head
)

// FIFO makes the default line: first come, first served. Calls that were put
// back come before all others and among themselves in the order in which they
// arrived, so that several refusals at once do not turn the order round.
//
// Cost: O(1); a Join at the head passes the older calls that were put back, at
// most as many as there are slots.
func FIFO() Line { return &fifo{} }

// fifo is a list of tickets linked through themselves, so that it needs no
// memory of its own and a ticket leaves from the middle in O(1).
type fifo struct {
	head, tail *Ticket
}

// Join implements Line.
func (q *fifo) Join(t *Ticket, at Place) {
	t.place = at
	var before *Ticket // the ticket that t comes before; nil is the tail
	if at == Head {
		before = q.head
		for before != nil && before.place == Head && before.Request.Arrived <= t.Request.Arrived {
			before = before.next
		}
	}
	q.insert(t, before)
}

// Pop implements Line.
func (q *fifo) Pop(time.Duration) *Ticket {
	t := q.head
	q.Remove(t)
	return t
}

// Remove implements Line.
func (q *fifo) Remove(t *Ticket) {
	if t.prev == nil {
		q.head = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		q.tail = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.next, t.prev = nil, nil
}

// insert links t in front of before, or at the tail if before is nil.
func (q *fifo) insert(t, before *Ticket) {
	t.next = before
	if before == nil {
		t.prev, q.tail = q.tail, t
	} else {
		t.prev, before.prev = before.prev, t
	}
	if t.prev == nil {
		q.head = t
	} else {
		t.prev.next = t
	}
}
