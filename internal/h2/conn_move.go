package h2

// Move has an open stream go on in other memory: to, which is not open, takes
// the place of from in everything but its Owner, and from is ready for its next
// use. It may be called while a Handler is told of from: what the Handler is told
// next is told of to, and neither is finished when it returns.
func (c *Conn) Move(from, to *Stream) {
	if from.conn != c || to.conn != nil {
		panic("internal error: h2: a stream was moved that is not open, or onto one that is") //nolint:forbidigo // a broken invariant
	}
	owner := to.Owner
	*to = *from
	to.Owner = owner
	*from = Stream{Owner: from.Owner}
	c.streams.replace(to)
	c.waiting.replace(to)
	if c.cur == from {
		c.cur = to
	}
}

// replace puts s in the place of the member with its id.
func (t *streamTable) replace(s *Stream) {
	mask := uint32(len(t.slots) - 1)
	i := s.id >> 1 & mask
	for t.slots[i].id != s.id || t.slots[i].s == nil {
		i = (i + 1) & mask
	}
	t.slots[i].s = s
}

// replace puts s, a copy of a member, in that one's place; nothing if the copied
// stream was not on the list.
func (l *streamList) replace(s *Stream) {
	if !s.queued {
		return
	}
	if s.prev != nil {
		s.prev.next = s
	} else {
		l.head = s
	}
	if s.next != nil {
		s.next.prev = s
	} else {
		l.tail = s
	}
}
