package h2

// Unsend takes back a stream that was opened here, if the kernel has not accepted a byte
// of it: its frames are cut out of the output buffer and the peer never sees them (R14).
// It reports whether that was possible; the stream is then closed. Header blocks are
// stateless, so a missing one changes nothing for the others (R12). Streams that waited
// for its room or window are resumed.
func (c *Conn) Unsend(s *Stream) bool {
	if s.conn != c || c.accepted+uint64(c.taken) > s.headStart {
		return false
	}
	c.cut(s)
	c.drop(s)
	if c.outOff == len(c.out) {
		c.releaseOutput()
	}
	c.resume()
	return true
}

// cut takes the frames of s, none of which was sent yet, out of the output. Other frames
// move down in place.
func (c *Conn) cut(s *Stream) {
	from := c.outOff + int(s.headStart-c.accepted-uint64(c.taken))
	start := s.headStart
	// The table size update in the connection's first block must not get lost: the next
	// block takes it over (R12).
	owed := c.updateAt == start
	kept := c.out[:from]
	for rest := c.out[from:]; len(rest) > 0; {
		h := parseFrameHeader(rest)
		frame := rest[:frameHeaderLen+int(h.length)]
		rest = rest[len(frame):]
		at := start + uint64(len(kept)-from)
		switch {
		case h.stream == s.id:
			c.shift(at, -len(frame))
			if h.kind == frameData {
				c.sendWindow += int64(h.length)
			}
		case owed && h.kind == frameHeaders:
			owed = false
			c.updateAt = at
			c.shift(at, updateFrameLen)
			kept = appendWithUpdate(kept, frame, h)
		default:
			kept = append(kept, frame...)
		}
	}
	c.out = kept
	if owed {
		c.sentBlock = false // no block is left
	}
}

// updateFrameLen is how much longer appendWithUpdate makes the output: no more than the
// frame with the update that was cut out, so it fits.
const updateFrameLen = frameHeaderLen + 1

// appendWithUpdate appends a HEADERS frame, which is in dst's array, with a table size
// update before its block. The update goes into a new frame, with the old one as its
// CONTINUATION, since the peer may not accept a longer frame.
// Source: RFC 9113 section 6.10.
func appendWithUpdate(dst, frame []byte, h frameHeader) []byte {
	start := len(dst)
	dst = dst[:start+updateFrameLen+len(frame)]
	copy(dst[start+updateFrameLen:], frame) // first: the two may overlap
	last := h.flags & flagEndHeaders
	head := appendFrameHeader(dst[:start], 1, frameHeaders, h.flags&^last, h.stream)
	head = AppendTableSizeUpdateZero(head)
	appendFrameHeader(head, int(h.length), frameContinuation, last, h.stream)
	return dst
}

// shift moves the start of every stream that begins after position at.
func (c *Conn) shift(at uint64, by int) {
	for _, slot := range c.streams.slots {
		if s := slot.s; s != nil && s.headStart > at {
			s.headStart += uint64(by)
		}
	}
}
