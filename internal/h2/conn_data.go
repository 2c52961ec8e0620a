package h2

// beginData accounts for a DATA frame as a whole when its header has arrived;
// its bytes are passed on as they come. Source: RFC 9113 section 6.1.
func (c *Conn) beginData(h frameHeader) error {
	if h.stream == 0 {
		return connError(ProtocolError, "data_stream_0")
	}
	size := int64(h.length)
	if size > c.recvWindow {
		return connError(FlowControlError, "data_over_connection_window")
	}
	c.recvWindow -= size
	c.inData, c.dataEnd = true, h.flags&flagEndStream != 0
	c.dataLeft, c.padLeft, c.padPending = h.length, 0, h.flags&flagPadded != 0
	if c.padPending && h.length == 0 {
		return connError(FrameSizeError, "data_no_pad_length")
	}
	s := c.streams.get(h.stream)
	c.cur = s
	switch {
	case s == nil:
		if err := c.dataOnClosed(h.stream); err != nil {
			return err
		}
	case !s.gotHead: // RFC 9113 8.1: DATA before the answer began
		c.breakStream(s, ProtocolError)
	case s.remoteDone: // RFC 9113 5.1, half-closed (remote)
		c.breakStream(s, StreamClosed)
	case size > s.recvWindow:
		c.breakStream(s, FlowControlError)
	default:
		s.recvWindow -= size
	}
	// Connection credit is returned on receipt, so that one stalled stream
	// cannot block the others (R11).
	c.creditConn(size)
	_, err := c.readData(nil)
	return err
}

// dataOnClosed answers DATA for a stream that is not open. A worker's is left
// without an answer: we have reset the stream, and servers count our resets
// against the whole connection (R14).
func (c *Conn) dataOnClosed(id uint32) error {
	if c.idle(id) {
		return connError(ProtocolError, "data_idle_stream") // RFC 9113 5.1
	}
	if c.cfg.Server && !c.wasReset(id) {
		c.writeRST(id, StreamClosed)
	}
	return nil
}

// readData passes on what p holds of the current DATA frame. With an empty p
// it only completes frames that need no more bytes.
func (c *Conn) readData(p []byte) (int, error) {
	taken := 0
	if c.padPending && len(p) > 0 {
		c.padPending = false
		c.padLeft = uint32(p[0])
		c.dataLeft--
		taken = 1
		if c.padLeft > c.dataLeft {
			return 0, connError(ProtocolError, "data_padding") // RFC 9113 6.1
		}
		c.dataLeft -= c.padLeft
		c.creditPadding(int64(c.padLeft) + 1)
	}
	if c.padPending {
		return 0, nil
	}
	n := min(len(p)-taken, int(c.dataLeft))
	chunk := p[taken : taken+n]
	taken += n
	c.dataLeft -= uint32(n)
	skip := min(len(p)-taken, int(c.padLeft))
	taken += skip
	c.padLeft -= uint32(skip)
	done := c.dataLeft == 0 && c.padLeft == 0
	c.inData = !done
	c.passData(chunk, done && c.dataEnd)
	return taken, nil
}

func (c *Conn) passData(chunk []byte, end bool) {
	s := c.cur
	if s == nil || (len(chunk) == 0 && !end) {
		return
	}
	if end {
		s.remoteDone = true
	}
	c.h.Data(s, chunk, end)
	if end {
		c.finish(s)
	}
}

// creditPadding returns the stream credit of padding, which nobody forwards.
func (c *Conn) creditPadding(n int64) {
	if c.cur != nil {
		c.Credit(c.cur, int(n))
	}
}
