package h2

import (
	"time"
)

// noQuota is the value of Conn.quota while no stream has to share.
const noQuota = 1<<63 - 1

// waitingFrames counts the control frames in the output. Frames after the mark are
// recent; once the kernel has accepted everything before the mark, the older ones are
// gone and the mark moves on. So the count is never too low, and it falls whenever the
// peer reads.
type waitingFrames struct {
	older, recent int
	mark          uint64 // position
}

func (w *waitingFrames) add() { w.recent++ }

func (w *waitingFrames) count(accepted, position uint64) int {
	if accepted >= w.mark {
		w.older, w.recent, w.mark = w.recent, 0, position
	}
	return w.older + w.recent
}

// firstBuffer is the smallest output buffer: a few answers to small calls.
const firstBuffer = 4 << 10

// reserve makes room for n more bytes of output and wakes the driver if the output was
// empty.
func (c *Conn) reserve(n int) {
	if len(c.out)+n > cap(c.out) {
		c.growOutput(n)
	}
	if c.outOff == len(c.out) {
		c.waker.Dirty(c)
	}
}

func (c *Conn) growOutput(n int) {
	if c.out == nil {
		c.out = c.pool.Get(max(n, firstBuffer, min(c.outSize, c.cfg.OutputHigh)))
		return
	}
	if c.outOff > 0 { // sent bytes go first
		rest := copy(c.out, c.out[c.outOff:])
		c.out, c.outOff = c.out[:rest], 0
	}
	c.out = c.pool.Grow(c.out, n)
}

// pending is the number of bytes that were appended and are not accepted yet.
func (c *Conn) pending() int { return len(c.out) - c.outOff + c.taken }

// position is the number of bytes ever appended.
func (c *Conn) position() uint64 { return c.accepted + uint64(c.pending()) }

// Output returns the bytes to send now. They stay in place until Sent.
func (c *Conn) Output() []byte { return c.out[c.outOff : c.outOff+c.sendable()] }

// sendable is the number of bytes that may leave now. A client keeps its streams back
// until the peer's SETTINGS show that a process has accepted the connection: so a
// connection that dies in the backlog of an exiting worker loses no call (R4).
func (c *Conn) sendable() int {
	all := len(c.out) - c.outOff
	if c.greeting == 0 {
		return all
	}
	return min(all, int(c.greeting-min(c.greeting, c.accepted+uint64(c.taken))))
}

// Sent reports that the kernel has accepted the first n bytes of Output.
// Streams that waited for room are resumed.
func (c *Conn) Sent(n int) {
	c.outOff += n
	c.accepted += uint64(n)
	if c.outOff == len(c.out) {
		c.releaseOutput()
	}
	c.resume()
}

func (c *Conn) releaseOutput() {
	c.outSize = len(c.out)
	c.pool.Put(c.out)
	c.out, c.outOff, c.control = nil, 0, waitingFrames{}
}

// Take hands out the whole output for a driver that writes outside the lock; nil without
// output. The driver calls Returned with the same buffer, under the lock, before it takes
// another one.
func (c *Conn) Take() (buf []byte, off int) {
	n := c.sendable()
	if n == 0 {
		return nil, 0
	}
	if c.outOff+n < len(c.out) { // the greeting alone
		buf = append(c.pool.Get(n), c.out[c.outOff:c.outOff+n]...)
		c.outOff, c.taken = c.outOff+n, n
		return buf, 0
	}
	buf, off = c.out, c.outOff
	c.outSize, c.taken = len(c.out), len(c.out)-c.outOff
	c.out, c.outOff = nil, 0
	return buf, off
}

// Returned reports that the buffer of Take was written.
func (c *Conn) Returned(buf []byte) {
	c.accepted += uint64(c.taken)
	c.taken = 0
	c.pool.Put(buf)
	c.resume()
}

// resume tells waiting streams that they may write, one after another, as long
// as the connection has room.
func (c *Conn) resume() {
	if c.resuming || c.waiting.head == nil {
		return
	}
	c.resuming = true
	for c.waiting.head != nil && c.room() > 0 {
		s := c.waiting.head
		c.waiting.remove(s)
		if !s.wants || s.sendWindow <= 0 {
			continue
		}
		s.wants = false
		// While others wait, each stream gets one frame's worth in turn.
		c.quota = noQuota
		if c.waiting.head != nil {
			c.quota = defaultMaxFrame
		}
		c.h.Writable(s)
	}
	c.quota, c.resuming = noQuota, false
}

// room is how many bytes of DATA the connection as a whole can take now.
func (c *Conn) room() int64 {
	return min(c.sendWindow, int64(c.cfg.OutputHigh-c.pending()))
}

// Writable returns how many bytes of DATA can be written on s now: the least
// of the stream's window, the connection's, and the room in the output buffer.
func (c *Conn) Writable(s *Stream) int {
	return int(max(min(c.room(), s.sendWindow, c.quota), 0))
}

// Want asks for one call of Handler.Writable when at least one byte can be written on s.
func (c *Conn) Want(s *Stream) {
	if s.conn != c {
		return
	}
	s.wants = true
	if s.sendWindow > 0 {
		c.waiting.push(s)
	}
}

// Open begins a stream with the given stateless header block (client role).
// The block may come in several parts. The caller has asked CanOpen.
func (c *Conn) Open(s *Stream, end bool, block ...[]byte) {
	id := c.nextID
	c.nextID += 2
	c.register(s, id)
	s.headStart = c.position()
	s.sentHead = true
	c.writeBlock(s, end, block)
}

// WriteHeaders writes a final or interim response (server role) or trailers. end ends
// this side of the stream.
func (c *Conn) WriteHeaders(s *Stream, end bool, block ...[]byte) {
	if s.conn != c || s.localDone {
		return
	}
	s.sentHead = true
	c.writeBlock(s, end, block)
}

func (c *Conn) writeBlock(s *Stream, end bool, parts [][]byte) {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if !c.sentBlock {
		// A size update to 0 begins the first block: the peer may drop its table,
		// and later changes of its limit need no answer (R12, RFC 7541 4.2).
		size++
		c.updateAt = c.position()
	}
	var flags uint8
	if end {
		flags = flagEndStream
	}
	if size > c.peerFrame {
		c.writeLongBlock(s.id, flags, parts, size)
	} else {
		c.reserve(frameHeaderLen + size)
		c.out = appendFrameHeader(c.out, size, frameHeaders, flags|flagEndHeaders, s.id)
		c.out = c.appendParts(c.out, parts)
	}
	c.guard.sent++
	if end {
		c.ended(s)
	}
}

// ended notes that END_STREAM was written.
func (c *Conn) ended(s *Stream) {
	s.localDone = true
	c.guard.answered++
	c.finish(s)
}

func (c *Conn) appendParts(dst []byte, parts [][]byte) []byte {
	if !c.sentBlock {
		dst = AppendTableSizeUpdateZero(dst)
		c.sentBlock = true
	}
	for _, p := range parts {
		dst = append(dst, p...)
	}
	return dst
}

// writeLongBlock splits a block that is larger than the peer's frames.
// Source: RFC 9113 section 6.10.
func (c *Conn) writeLongBlock(id uint32, flags uint8, parts [][]byte, size int) {
	block := c.appendParts(c.pool.Get(size), parts)
	kind := frameHeaders
	for rest := block; len(rest) > 0; kind, flags = frameContinuation, 0 {
		n := min(len(rest), c.peerFrame)
		if n == len(rest) {
			flags |= flagEndHeaders
		}
		c.reserve(frameHeaderLen + n)
		c.out = appendFrameHeader(c.out, n, kind, flags, id)
		c.out = append(c.out, rest[:n]...)
		rest = rest[n:]
	}
	c.pool.Put(block)
}

// WriteData writes p, which is at most Writable bytes long, as one or more DATA frames.
// end ends this side of the stream; an empty p with end is always allowed.
func (c *Conn) WriteData(s *Stream, p []byte, end bool) {
	if s.conn != c || s.localDone {
		return
	}
	c.sendWindow -= int64(len(p))
	s.sendWindow -= int64(len(p))
	if c.quota != noQuota {
		c.quota -= int64(len(p))
	}
	cut := s.sendWindow == 0 || c.sendWindow == 0
	for {
		n := min(len(p), c.peerFrame)
		c.guard.served(n, cut)
		var flags uint8
		if end && n == len(p) {
			flags = flagEndStream
		}
		c.reserve(frameHeaderLen + n)
		c.out = appendFrameHeader(c.out, n, frameData, flags, s.id)
		c.out = append(c.out, p[:n]...)
		p = p[n:]
		if len(p) == 0 {
			break
		}
	}
	if end {
		c.ended(s)
	}
}

// Reset ends the stream in both directions. It writes RST_STREAM, unless both directions
// have ended or the connection has failed. The handler is not told.
func (c *Conn) Reset(s *Stream, code ErrCode) {
	if s.conn != c {
		return
	}
	if (!s.localDone || !s.remoteDone) && c.state != failed {
		c.writeRST(s.id, code)
	}
	c.drop(s)
}

func (c *Conn) writeRST(id uint32, code ErrCode) {
	c.lastReset = max(c.lastReset, id)
	c.resetsOut++
	c.control.add()
	c.reserve(frameHeaderLen + 4)
	c.out = appendRST(c.out, id, code)
}

// Resets returns how many RST_STREAM frames were ever written, also by the engine
// itself: peers count them (R14).
func (c *Conn) Resets() uint64 { return c.resetsOut }

// GoAway writes a GOAWAY frame. Streams above last that arrive later are
// refused (server role). It may be called twice, with a falling last
// (RFC 9113 section 6.8). A peer whose preface has not come gets none (R22).
func (c *Conn) GoAway(last uint32, code ErrCode, debug string) {
	if c.silent() || (c.goAwayOut && last >= c.admitUpTo) {
		return
	}
	c.goAwayOut, c.admitUpTo = true, last
	c.reserve(frameHeaderLen + 8 + len(debug))
	c.out = appendGoAway(c.out, last, code, debug)
}

// AppendFarewell appends the whole output of a connection that is refused before it has
// begun: empty SETTINGS and a GOAWAY that accepts no stream. Its length is 26 bytes plus
// debug.
// Source: RFC 9113 sections 3.4 and 6.8.
func AppendFarewell(dst []byte, code ErrCode, debug string) []byte {
	dst = appendFrameHeader(dst, 0, frameSettings, 0, 0)
	return appendGoAway(dst, 0, code, debug)
}

// MaxStreamID is the last stream of the first GOAWAY of a two-step shutdown.
const MaxStreamID = maxStreamID

// LastPeerStream returns the highest stream that the peer has opened.
func (c *Conn) LastPeerStream() uint32 { return c.lastPeer }

// Ping writes a PING frame; the answer comes by Handler.Pong.
func (c *Conn) Ping(data [8]byte) {
	if c.silent() {
		return
	}
	c.reserve(frameHeaderLen + 8)
	c.out = appendPing(c.out, false, data)
}

// silent reports whether frames about the connection must not be written: it has ended,
// or the peer may speak another protocol.
func (c *Conn) silent() bool {
	return c.closed || c.state == failed || c.state == wantPreface
}

// Accepted returns how many bytes the kernel has ever accepted.
func (c *Conn) Accepted() uint64 { return c.accepted }

// Idle reports whether the peer's side has taken all output.
func (c *Conn) Idle() bool { return c.pending() == 0 }

// Raw appends bytes to the output of a connection that turned out not to speak
// HTTP/2 (ErrNotHTTP2): the answer in the peer's own protocol.
func (c *Conn) Raw(p []byte) {
	c.reserve(len(p))
	c.out = append(c.out, p...)
}

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

// Due returns when the peer must have finished the frame or the header block that it
// has begun, 0 if it has begun none. DATA is passed on as it comes and has no such
// limit; the limit for the preface belongs to the owner.
func (c *Conn) Due() time.Duration {
	switch {
	case c.fragStream == 0 && len(c.partial) == 0, c.cfg.FrameTime == 0, c.state != reading:
		return 0
	case c.fragStream != 0:
		return c.fragSince + c.cfg.FrameTime
	default:
		return c.partialSince + c.cfg.FrameTime
	}
}

// Overdue ends the connection if Due has passed.
//
// Errors: as Feed; nil if the peer still has time.
func (c *Conn) Overdue(now time.Duration) error {
	if due := c.Due(); due == 0 || now < due {
		return nil
	}
	token := tokenSlowFrame
	if c.fragStream != 0 || c.partialIsHead() {
		token = tokenSlowHeaders
	}
	return c.fail(connError(EnhanceYourCalm, token))
}

// partialIsHead reports whether the partial frame begins a header block.
func (c *Conn) partialIsHead() bool {
	return len(c.partial) >= frameHeaderLen && parseFrameHeader(c.partial).kind == frameHeaders
}
