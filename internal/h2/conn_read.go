package h2

import (
	"encoding/binary"
	"errors"
	"time"
)

// Feed hands in bytes that arrived from the peer, in any pieces, at the time now, which
// never decreases. The engine keeps no reference to p, and may write over it.
//
// Errors: a *ConnError means that the connection cannot go on: GOAWAY with its code is
// in Output already; the driver flushes once and closes. For ErrNotHTTP2 nothing was
// written.
func (c *Conn) Feed(p []byte, now time.Duration) error {
	if c.state == failed {
		return nil
	}
	c.guard.now = now
	err := c.feed(p)
	if err == nil {
		err = c.checkBacklog()
	}
	if err == nil {
		if c.cfg.Excess != nil {
			c.tellExcess()
		}
		return nil
	}
	return c.fail(err)
}

// fail ends the connection for an error, and tells the peer.
func (c *Conn) fail(err error) error {
	c.state = failed
	var ce *ConnError
	if errors.As(err, &ce) && ce != ErrNotHTTP2 {
		c.reserve(frameHeaderLen + 8 + len(ce.Reason))
		c.out = appendGoAway(c.out, c.lastPeer, ce.Code, ce.Reason)
	}
	return err
}

// checkBacklog bounds the output for a peer that sends but does not read.
func (c *Conn) checkBacklog() error {
	if c.control.count(c.accepted, c.position()) > maxControl {
		return connError(EnhanceYourCalm, tokenControl)
	}
	answers := maxBlocks * int(c.cfg.MaxStreams) * int(c.cfg.MaxHeaderList)
	if answers > 0 && c.pending() > c.cfg.OutputHigh+answers {
		return connError(EnhanceYourCalm, tokenOutput)
	}
	return nil
}

func (c *Conn) feed(p []byte) error {
	for len(p) > 0 && c.state != failed {
		var n int
		var err error
		switch {
		case c.inData:
			n, err = c.readData(p)
		case len(c.partial) > 0 || c.state == wantPreface:
			n, err = c.readPartial(p)
		default:
			n, err = c.readFrame(p)
		}
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// readFrame handles the frame at the start of p, or keeps it as partial if it is not
// complete. It returns how many bytes it took.
func (c *Conn) readFrame(p []byte) (int, error) {
	if len(p) < frameHeaderLen {
		return c.keepPartial(p), nil
	}
	h := parseFrameHeader(p)
	if err := c.checkHeader(h); err != nil {
		return 0, err
	}
	if h.kind == frameData {
		return c.readRun(h, p)
	}
	total := frameHeaderLen + int(h.length)
	if len(p) < total {
		return c.keepPartial(p), nil
	}
	c.behind = p[total:]
	err := c.handle(h, p[frameHeaderLen:total])
	c.behind = nil
	return total, err
}

// Follows reports, inside of Handler.Headers, whether bytes of the stream have been
// read already and come next: Handler.Data is called before Feed returns, unless
// they break a rule. It may be false although they have.
func (c *Conn) Follows(s *Stream) bool {
	if len(c.behind) <= frameHeaderLen {
		return false
	}
	h := parseFrameHeader(c.behind)
	return h.kind == frameData && h.stream == s.id && h.length > 0 && h.flags&flagPadded == 0
}

// keepPartial keeps the beginning of a frame, whose time runs from now on (Due).
func (c *Conn) keepPartial(p []byte) int {
	c.partialSince = c.guard.now
	c.partial = c.pool.Append(c.partial, p)
	return len(p)
}

// readPartial completes the preface or the partial frame.
func (c *Conn) readPartial(p []byte) (int, error) {
	if c.state == wantPreface {
		return c.readPreface(p)
	}
	taken := 0
	if need := frameHeaderLen - len(c.partial); need > 0 {
		taken = min(need, len(p))
		c.partial = c.pool.Append(c.partial, p[:taken])
		if len(c.partial) < frameHeaderLen {
			return taken, nil
		}
	}
	h := parseFrameHeader(c.partial)
	if err := c.checkHeader(h); err != nil {
		return 0, err
	}
	if h.kind == frameData {
		c.clearPartial()
		return taken, c.beginData(h)
	}
	need := frameHeaderLen + int(h.length) - len(c.partial)
	n := min(need, len(p)-taken)
	c.partial = c.pool.Append(c.partial, p[taken:taken+n])
	taken += n
	if n < need {
		return taken, nil
	}
	frame := c.partial
	c.partial = nil
	err := c.handle(h, frame[frameHeaderLen:])
	c.pool.Put(frame)
	return taken, err
}

func (c *Conn) readPreface(p []byte) (int, error) {
	n := min(len(Preface)-len(c.partial), len(p))
	for i := range n {
		if p[i] != Preface[len(c.partial)+i] {
			return 0, ErrNotHTTP2
		}
	}
	c.partial = c.pool.Append(c.partial, p[:n])
	if len(c.partial) == len(Preface) {
		c.clearPartial()
		c.state = wantSettings
		c.greet()
	}
	return n, nil
}

func (c *Conn) clearPartial() {
	c.pool.Put(c.partial)
	c.partial = nil
}

// checkHeader enforces the rules for frames of every kind.
func (c *Conn) checkHeader(h frameHeader) error {
	if h.length > defaultMaxFrame && h.length > c.frameLimit(h.kind) { // RFC 9113 4.2
		return connError(FrameSizeError, "frame_too_large")
	}
	if c.state == wantSettings && (h.kind != frameSettings || h.flags&flagAck != 0) {
		return connError(ProtocolError, "first_frame_not_settings") // RFC 9113 3.4
	}
	if c.fragStream != 0 && (h.kind != frameContinuation || h.stream != c.fragStream) {
		return connError(ProtocolError, "header_block_interrupted") // RFC 9113 4.3
	}
	return nil
}

// frameLimit is the longest accepted frame of a kind: as announced, except for kinds
// that never need so much.
func (c *Conn) frameLimit(k frameType) uint32 {
	switch k {
	case framePriority, frameRSTStream, frameSettings, framePing, frameGoAway, frameWindowUpdate:
		return defaultMaxFrame
	default:
		return max(defaultMaxFrame, c.cfg.MaxFrame)
	}
}

func (c *Conn) handle(h frameHeader, p []byte) error {
	switch h.kind {
	case frameHeaders:
		return c.onHeaders(h, p)
	case frameContinuation:
		return c.onContinuation(h, p)
	case frameRSTStream:
		return c.onRST(h, p)
	case frameSettings:
		return c.onSettings(h, p)
	case framePing:
		return c.onPing(h, p)
	case frameGoAway:
		return c.onGoAway(h, p)
	case frameWindowUpdate:
		return c.onWindowUpdate(h, p)
	case framePriority:
		return c.onPriority(h, p)
	case framePushPromise:
		// A client must not push; we have disabled it as a client (RFC 9113 8.4).
		return connError(ProtocolError, "push_promise")
	default:
		return c.spend(UnknownFlood) // RFC 9113 4.1: otherwise ignored
	}
}

func (c *Conn) onHeaders(h frameHeader, p []byte) error {
	if h.stream == 0 {
		return connError(ProtocolError, "headers_stream_0")
	}
	c.fragSelf = false
	if h.flags&(flagPadded|flagPriority) != 0 {
		block, dependsOn, err := stripPadding(h, p)
		if err != nil {
			return err
		}
		p, c.fragSelf = block, dependsOn == h.stream
	}
	c.fragStream, c.fragEnd, c.fragments = h.stream, h.flags&flagEndStream != 0, 1
	if h.flags&flagEndHeaders == 0 {
		c.fragSince = c.guard.now
		c.frag = c.pool.Append(c.frag[:0], p)
		return nil
	}
	return c.onBlock(p)
}

func (c *Conn) onContinuation(h frameHeader, p []byte) error {
	if c.fragStream == 0 {
		return connError(ProtocolError, "continuation_without_headers") // RFC 9113 6.10
	}
	c.fragments++
	if len(c.frag)+len(p) > blockFactor*int(c.cfg.MaxHeaderList) || c.fragments > maxFragments ||
		(len(p) == 0 && h.flags&flagEndHeaders == 0) {
		return connError(EnhanceYourCalm, tokenContinuation)
	}
	c.frag = c.pool.Append(c.frag, p)
	if h.flags&flagEndHeaders == 0 {
		return nil
	}
	frag := c.frag
	c.frag = nil
	err := c.onBlock(frag)
	c.pool.Put(frag)
	return err
}

// onBlock handles a complete header block of the stream fragStream.
func (c *Conn) onBlock(p []byte) error {
	id, end := c.fragStream, c.fragEnd
	c.fragStream = 0
	s := c.streams.get(id)
	kind := RequestBlock
	switch {
	case s != nil && s.gotHead:
		kind = TrailerBlock
	case !c.cfg.Server:
		kind = ResponseBlock
	}
	err := c.dec.Transcode(c.block, p, kind)
	if err != nil {
		if fatal := asConnError(err); fatal != nil {
			return fatal
		}
	}
	switch {
	case err != nil:
	case c.fragSelf:
		err = errSelfDependency
	case end && kind == RequestBlock && c.block.promises() && c.block.promised() != 0:
		err = MalformedLength // RFC 9113 8.1.1: content is promised, but none comes
	}
	if s == nil {
		if s, err = c.admit(id, err); s == nil {
			return err
		}
	}
	if s.remoteDone {
		return c.breakStream(s, StreamClosed) // RFC 9113 5.1, half-closed (remote)
	}
	return c.deliver(s, kind, err, end)
}

// asConnError translates an error of the decoder about the whole connection; nil for an
// error about the stream only.
func asConnError(err error) error {
	if broken, ok := errors.AsType[CompressionError](err); ok {
		if broken == CompressionBomb { // correct, but no encoder does that
			return connError(EnhanceYourCalm, broken.Token())
		}
		return connError(CompressionFailure, broken.Token())
	}
	return nil
}

// deliver hands a decoded block to the handler; blockErr is the fault of the block
// itself.
func (c *Conn) deliver(s *Stream, kind Kind, blockErr error, end bool) error {
	interim := kind == ResponseBlock && blockErr == nil && c.block.Status < 200
	if kind != TrailerBlock && !interim && blockErr == nil {
		c.expect(s)
	}
	if blockErr != nil && !errors.Is(blockErr, ErrListTooLarge) || interim && end ||
		kind == TrailerBlock && !end || end && !contentComplete(s.contentLeft) {
		// Malformed (RFC 9113 8.1.1), an interim answer with END_STREAM (8.1), trailers
		// that do not end the stream (8.1), or the end of a message that is not complete
		// by its content-length (8.1.1).
		return c.breakStream(s, ProtocolError)
	}
	if blockErr != nil {
		if err := c.spend(LargeList); err != nil {
			return err
		}
	}
	s.gotHead = !interim
	s.remoteDone = end
	if blockErr != nil {
		c.h.TooLarge(s, end)
	} else {
		c.h.Headers(s, c.block, end)
	}
	if end {
		c.finish(s)
	}
	return nil
}

// admit opens a stream for a request block, or answers a block for a stream
// that is not open. A nil stream means that the block was handled.
func (c *Conn) admit(id uint32, blockErr error) (*Stream, error) {
	if !c.cfg.Server {
		if c.idle(id) {
			return nil, connError(ProtocolError, "headers_idle_stream")
		}
		return nil, c.spend(ExcessStream) // an answer to a stream that we have reset
	}
	if id&1 == 0 {
		return nil, connError(ProtocolError, "headers_even_stream") // RFC 9113 5.1.1
	}
	if id <= c.lastReset {
		return nil, c.spend(ExcessStream) // it may have been under way when we reset the stream
	}
	if id <= c.lastPeer {
		return nil, connError(StreamClosed, "headers_closed_stream")
	}
	c.lastPeer = id
	if id > c.admitUpTo || (c.cfg.MaxStreams != 0 && uint32(c.streams.n) >= c.cfg.MaxStreams) {
		c.writeRST(id, RefusedStream) // RFC 9113 5.1.2 and 6.8
		return nil, c.spend(ExcessStream)
	}
	if blockErr != nil && !errors.Is(blockErr, ErrListTooLarge) {
		c.writeRST(id, ProtocolError) // malformed, RFC 9113 8.1.1
		return nil, c.spend(MadeReset)
	}
	s := c.h.Accept(c, c.block)
	if s == nil {
		c.writeRST(id, RefusedStream)
		return nil, nil
	}
	c.register(s, id)
	return s, blockErr
}

func (c *Conn) register(s *Stream, id uint32) {
	s.conn, s.id = c, id
	c.guard.opened++
	s.sendWindow = c.peerWindow
	s.recvWindow, s.recvSize = c.initWindow, c.initWindow
	s.contentLeft = noContentLength
	if c.cfg.Server && !c.settled {
		// A caller that begins before it has seen our SETTINGS uses the default
		// window (RFC 9113 6.5.3, 6.9.2).
		s.recvWindow = max(s.recvWindow, defaultWindow)
	}
	c.streams.put(s)
}

func (c *Conn) onRST(h frameHeader, p []byte) error {
	if len(p) != 4 {
		return connError(FrameSizeError, "rst_size")
	}
	if h.stream == 0 || c.idle(h.stream) {
		return connError(ProtocolError, "rst_idle_stream")
	}
	if err := c.spend(RapidReset); err != nil {
		return err
	}
	s := c.streams.get(h.stream)
	if s == nil {
		return nil
	}
	c.drop(s)
	c.h.Reset(s, ErrCode(binary.BigEndian.Uint32(p)), false)
	return nil
}

func (c *Conn) onPing(h frameHeader, p []byte) error {
	if h.stream != 0 {
		return connError(ProtocolError, "ping_stream")
	}
	if len(p) != 8 {
		return connError(FrameSizeError, "ping_size")
	}
	if err := c.spend(PingFlood); err != nil {
		return err
	}
	data := [8]byte(p)
	if h.flags&flagAck != 0 {
		c.h.Pong(c, data)
		return nil
	}
	c.control.add()
	c.reserve(frameHeaderLen + 8)
	c.out = appendPing(c.out, true, data)
	return nil
}

func (c *Conn) onGoAway(h frameHeader, p []byte) error {
	if h.stream != 0 {
		return connError(ProtocolError, "goaway_stream")
	}
	if len(p) < 8 {
		return connError(FrameSizeError, "goaway_size")
	}
	if err := c.spend(SettingsFlood); err != nil {
		return err
	}
	last := binary.BigEndian.Uint32(p) & maxStreamID
	code := ErrCode(binary.BigEndian.Uint32(p[4:]))
	if c.goAwayIn && last > c.goAwayLast {
		last = c.goAwayLast // RFC 9113 6.8: it must not rise; the lower one counts (R4)
	}
	c.goAwayIn, c.goAwayLast = true, last
	c.h.GoAway(c, last, code)
	return nil
}

// onPriority ignores the content of the frame (RFC 9113 5.3.2), but not a wrong form. An
// idle stream cannot be reset (6.4), so its error is one of the connection.
func (c *Conn) onPriority(h frameHeader, p []byte) error {
	var code ErrCode
	var token string
	switch {
	case h.stream == 0:
		return connError(ProtocolError, "priority_stream_0")
	case len(p) != 5:
		code, token = FrameSizeError, "priority_size" // RFC 9113 6.3
	case dependency(p) == h.stream:
		code, token = ProtocolError, "priority_self"
	default:
		return c.spend(PriorityFlood)
	}
	if c.idle(h.stream) {
		return connError(code, token)
	}
	if s := c.streams.get(h.stream); s != nil {
		return c.breakStream(s, code)
	}
	c.writeRST(h.stream, code)
	return c.spend(MadeReset)
}

// idle reports whether the stream was never opened by either side.
func (c *Conn) idle(id uint32) bool {
	if c.cfg.Server {
		return id > c.lastPeer || id&1 == 0
	}
	return id >= c.nextID || id&1 == 0
}

// breakStream resets a stream after its peer broke a rule about this stream only, and
// tells the handler. Source: RFC 9113 section 5.4.2.
func (c *Conn) breakStream(s *Stream, code ErrCode) error {
	c.writeRST(s.id, code)
	c.drop(s)
	c.h.Reset(s, code, true)
	return c.spend(MadeReset)
}
