package h2

import (
	"encoding/binary"
	"math"
)

// onSettings applies the peer's settings and acknowledges them.
// Source: RFC 9113 section 6.5.
func (c *Conn) onSettings(h frameHeader, p []byte) error {
	if h.stream != 0 {
		return connError(ProtocolError, "settings_stream")
	}
	if h.flags&flagAck != 0 {
		if len(p) != 0 {
			return connError(FrameSizeError, "settings_ack_size")
		}
		c.settled = true
		return c.spend(SettingsFlood)
	}
	if len(p)%6 != 0 {
		return connError(FrameSizeError, "settings_size")
	}
	if len(p) > 6*maxSettings {
		return connError(EnhanceYourCalm, tokenSettings)
	}
	if err := c.spend(SettingsFlood); err != nil {
		return err
	}
	if c.state == wantSettings {
		c.peerStreams = maxStreamID // no limit, unless these settings have one
	}
	for ; len(p) > 0; p = p[6:] {
		id, value := settingID(binary.BigEndian.Uint16(p)), binary.BigEndian.Uint32(p[2:])
		if err := c.applySetting(id, value); err != nil {
			return err
		}
	}
	c.state = reading
	if c.greeting != 0 {
		c.greeting = 0
		c.waker.Dirty(c) // streams may have waited for this
	}
	c.control.add()
	c.reserve(frameHeaderLen)
	c.out = appendFrameHeader(c.out, 0, frameSettings, flagAck, 0)
	c.resume()
	if c.cfg.Settled != nil {
		c.cfg.Settled(c)
	}
	return nil
}

func (c *Conn) applySetting(id settingID, value uint32) error {
	switch id {
	case settingEnablePush:
		if value > 1 || (value == 1 && !c.cfg.Server) {
			return connError(ProtocolError, "setting_enable_push")
		}
	case settingMaxConcurrentStreams:
		c.peerStreams = value
	case settingInitialWindowSize:
		if value > maxWindow {
			return connError(FlowControlError, "setting_initial_window")
		}
		return c.shiftWindows(int64(value))
	case settingMaxFrameSize:
		if value < defaultMaxFrame || value >= maxMaxFrame {
			return connError(ProtocolError, "setting_max_frame_size")
		}
		c.peerFrame = int(value)
	case settingMaxHeaderListSize:
		// Advisory: the owner decides (PeerHeaderList).
		c.peerList = min(value, math.MaxInt32)
	case settingHeaderTableSize:
		// Our output uses no dynamic table (R12), so its size does not matter.
	}
	return nil
}

// shiftWindows applies a changed SETTINGS_INITIAL_WINDOW_SIZE to every open
// stream. Source: RFC 9113 section 6.9.2.
func (c *Conn) shiftWindows(size int64) error {
	delta := size - c.peerWindow
	c.peerWindow = size
	for _, slot := range c.streams.slots {
		s := slot.s
		if s == nil {
			continue
		}
		s.sendWindow += delta
		if s.sendWindow > maxWindow {
			return connError(FlowControlError, "setting_window_overflow")
		}
		if s.wants && s.sendWindow > 0 {
			c.waiting.push(s)
		}
	}
	return nil
}

// onWindowUpdate gives us room to send. Source: RFC 9113 section 6.9.
func (c *Conn) onWindowUpdate(h frameHeader, p []byte) error {
	if len(p) != 4 {
		return connError(FrameSizeError, "window_update_size")
	}
	if err := c.spend(WindowFlood); err != nil {
		return err
	}
	n := int64(binary.BigEndian.Uint32(p) & maxWindow)
	if h.stream == 0 {
		if n == 0 {
			return connError(ProtocolError, "window_update_zero")
		}
		c.sendWindow += n
		if c.sendWindow > maxWindow {
			return connError(FlowControlError, "connection_window_overflow")
		}
		c.resume()
		return nil
	}
	s := c.streams.get(h.stream)
	if s == nil {
		if c.idle(h.stream) {
			return connError(ProtocolError, "window_update_idle_stream")
		}
		return nil
	}
	switch s.sendWindow += n; {
	case n == 0:
		return c.breakStream(s, ProtocolError)
	case s.sendWindow > maxWindow:
		return c.breakStream(s, FlowControlError)
	case s.wants && s.sendWindow > 0:
		c.waiting.push(s)
		c.resume()
	}
	return nil
}

// creditConn returns connection credit in steps of half the window.
func (c *Conn) creditConn(n int64) {
	c.recvDebt += n
	if c.recvDebt < int64(c.cfg.ConnWindow)/2 {
		return
	}
	c.control.add()
	c.reserve(frameHeaderLen + 4)
	c.out = appendWindowUpdate(c.out, 0, uint32(c.recvDebt))
	c.recvWindow += c.recvDebt
	c.recvDebt = 0
}

// Credit says that n bytes from s have left the process. Their credit goes back to the
// peer when half of the window is owed; then the window doubles, up to Config.MaxWindow,
// unless the budget is pressed (R11).
func (c *Conn) Credit(s *Stream, n int) {
	if s.conn != c || s.remoteDone || n == 0 {
		return
	}
	s.recvDebt += int64(n)
	if s.recvDebt < s.recvSize/2 {
		return
	}
	size := s.recvSize
	if !c.pool.Budget().Pressed() {
		size = max(size, min(2*size, int64(c.cfg.MaxWindow)))
	}
	increment := s.recvDebt + size - s.recvSize
	s.recvSize, s.recvDebt = size, 0
	c.widen(s, increment)
}

// Advance gives the peer credit for n bytes at once: first for bytes that are owed
// (Stream.Debt), then for bytes that have arrived on s and have not left, so that the
// peer may send more than a window. The window does not grow, and Credit must not be
// called for these bytes any more.
func (c *Conn) Advance(s *Stream, n int) {
	if s.conn != c || s.remoteDone || n <= 0 {
		return
	}
	s.recvDebt -= min(s.recvDebt, int64(n))
	c.widen(s, int64(n))
}

func (c *Conn) widen(s *Stream, n int64) {
	s.recvWindow += n
	c.control.add()
	c.reserve(frameHeaderLen + 4)
	c.out = appendWindowUpdate(c.out, s.id, uint32(n))
}
