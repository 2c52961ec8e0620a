package rank

import "time"

// position is the end of a list at which a ticket joins.
type position uint8

const (
	// tail is behind everyone else.
	tail position = iota
	// head is before all calls that have not had a slot yet.
	head
)

// waitList holds the waiting tickets of one account in one lane. Calls that were put
// back (R1) come before all others and among themselves in the order of arrival, so
// that several refusals at once do not reverse the order.
//
// Shape: a list of tickets linked through themselves, so that it needs no memory
// of its own and a ticket leaves from the middle in O(1). The zero value is
// empty.
// Cost: O(1); a join at the head passes the older calls that were put back, at
// most one for each slot.
type waitList struct {
	first, last *Ticket
	state       OrderState // what the order considers
	newest      bool       // the newest is served first
}

func (l *waitList) join(t *Ticket, at position) {
	t.position = at
	var before *Ticket // the ticket that t comes before; nil is the tail
	if at == head {
		before = l.first
		for before != nil && before.position == head && before.Request.Arrived <= t.Request.Arrived {
			before = before.next
		}
	}
	l.insert(t, before)
}

// sortIn moves a ticket that has waited in another lane before tickets that came later.
func (l *waitList) sortIn(t *Ticket) {
	var before *Ticket
	for p := t.prev; p != nil && p.position == tail && p.Request.Arrived > t.Request.Arrived; p = p.prev {
		before = p
	}
	if before != nil {
		l.remove(t)
		l.insert(t, before)
	}
}

// next returns the ticket that is served now; the list is not empty. Calls that were put
// back come first in any case: their turn had come already.
func (l *waitList) next(order Order, now time.Duration) *Ticket {
	l.newest = order(&l.state, now)
	if l.newest && l.first.position != head {
		return l.last
	}
	return l.first
}

// toDrop returns the ticket that is dropped if one has to be: the newest, which has
// waited least, or under overload the oldest, which has the least time left. It is nil
// if all were put back (R1).
func (l *waitList) toDrop() *Ticket {
	switch {
	case l.last.position == head:
		return nil
	case l.newest && l.first.position != head:
		return l.first
	}
	return l.last
}

func (l *waitList) remove(t *Ticket) {
	if t.prev == nil {
		l.first = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		l.last = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.next, t.prev = nil, nil
	if l.first == nil {
		l.state, l.newest = OrderState{}, false
	}
}

// insert links t in front of before, or at the tail if before is nil.
func (l *waitList) insert(t, before *Ticket) {
	t.next = before
	if before == nil {
		t.prev, l.last = l.last, t
	} else {
		t.prev, before.prev = before.prev, t
	}
	if t.prev == nil {
		l.first = t
	} else {
		t.prev.next = t
	}
}
