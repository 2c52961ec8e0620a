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
	c.cur = c.streams.get(h.stream)
	if err := c.acceptData(h.stream, size); err != nil {
		return err
	}
	if size == 0 && !c.dataEnd {
		if err := c.spend(EmptyData); err != nil {
			return err
		}
	}
	// Connection credit is returned on receipt, so that one stalled stream
	// cannot block the others (R11).
	c.creditConn(size)
	_, err := c.readData(nil)
	return err
}

// readRun handles the DATA frame h at the start of p together with the frames
// of the same stream right behind it, as if it were one frame: a stream of small
// messages costs and leaves as few frames as it came in reads. It returns how
// many bytes it took.
func (c *Conn) readRun(h frameHeader, p []byte) (int, error) {
	run, taken := c.joinRun(h, p)
	if err := c.beginData(run); err != nil || taken == frameHeaderLen {
		return taken, err
	}
	_, err := c.readData(p[frameHeaderLen : frameHeaderLen+int(run.length)])
	return taken, err
}

// joinRun moves the payloads of a run of whole DATA frames together, behind the first
// header, and returns the header of the joined frame and how many bytes of p the run
// took. Frames with padding, empty ones, and those beyond a window do not join. A
// single frame is left as it is.
func (c *Conn) joinRun(h frameHeader, p []byte) (run frameHeader, taken int) {
	end := frameHeaderLen + int(h.length)
	if h.flags != 0 || h.length == 0 || len(p) < end+frameHeaderLen {
		return h, frameHeaderLen
	}
	s := c.streams.get(h.stream)
	if s == nil {
		return h, frameHeaderLen
	}
	room := min(c.recvWindow, s.recvWindow)
	run, taken = h, end
	for len(p)-taken >= frameHeaderLen && run.flags == 0 {
		next := parseFrameHeader(p[taken:])
		from, to := taken+frameHeaderLen, taken+frameHeaderLen+int(next.length)
		joins := next.kind == frameData && next.stream == h.stream && next.flags&^flagEndStream == 0 &&
			next.length != 0 && next.length <= defaultMaxFrame && int64(run.length+next.length) <= room
		if !joins || to > len(p) {
			break
		}
		copy(p[end:], p[from:to])
		end += int(next.length)
		run.length += next.length
		run.flags = next.flags
		taken = to
	}
	if run.length == h.length {
		return h, frameHeaderLen
	}
	return run, taken
}

// acceptData checks that the stream of a DATA frame may have it.
func (c *Conn) acceptData(id uint32, size int64) error {
	s := c.cur
	switch {
	case s == nil:
		return c.dataOnClosed(id)
	case !s.gotHead: // RFC 9113 8.1: DATA before the answer began
		return c.breakStream(s, ProtocolError)
	case s.remoteDone: // RFC 9113 5.1, half-closed (remote)
		return c.breakStream(s, StreamClosed)
	case size > s.recvWindow:
		return c.breakStream(s, FlowControlError)
	default:
		s.recvWindow -= size
		return nil
	}
}

// dataOnClosed answers DATA for a stream that is not open. DATA of a worker gets no
// answer: we have reset the stream, and servers count our resets against the whole
// connection (R14).
func (c *Conn) dataOnClosed(id uint32) error {
	if c.idle(id) {
		return connError(ProtocolError, "data_idle_stream") // RFC 9113 5.1
	}
	if c.cfg.Server && id > c.lastReset {
		c.writeRST(id, StreamClosed)
	}
	return nil
}

// readData passes on the bytes in p of the current DATA frame. With an empty p it only
// completes frames that need no more bytes.
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
		if c.dataLeft == 0 && !c.dataEnd { // a frame of padding is empty as well
			if err := c.spend(EmptyData); err != nil {
				return 0, err
			}
		}
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
	return taken, c.passData(chunk, done && c.dataEnd)
}

func (c *Conn) passData(chunk []byte, end bool) error {
	s := c.cur
	if s == nil || (len(chunk) == 0 && !end) {
		return nil
	}
	if s.contentLeft -= int64(len(chunk)); s.contentLeft < 0 || end && !contentComplete(s.contentLeft) {
		return c.breakStream(s, ProtocolError) // RFC 9113 8.1.1: content-length is wrong
	}
	if end {
		s.remoteDone = true
	}
	c.h.Data(s, chunk, end)
	if end {
		c.finish(s)
	}
	return nil
}

// creditPadding returns the stream credit of padding, which is not forwarded.
func (c *Conn) creditPadding(n int64) {
	if c.cur != nil {
		c.Credit(c.cur, int(n))
	}
}
