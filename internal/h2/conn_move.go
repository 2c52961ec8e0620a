package h2

// Move continues an open stream in other memory: to, which is not open, replaces from
// in everything but its Owner, and from is ready for its next use. It may be called
// inside a Handler's method for from: later calls are for to, and neither stream is
// finished when the method returns.
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

// replace replaces the member with the id of s by s.
func (t *streamTable) replace(s *Stream) {
	mask := uint32(len(t.slots) - 1)
	i := s.id >> 1 & mask
	for t.slots[i].id != s.id || t.slots[i].s == nil {
		i = (i + 1) & mask
	}
	t.slots[i].s = s
}

// replace replaces a member by s, its copy; it does nothing if the member was not on the
// list.
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
