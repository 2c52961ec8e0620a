package h2

import "time"

// Due returns when the peer must have finished the frame or the header block
// that it has begun, 0 if there is none. DATA is passed on as it comes and has
// no such limit, nor has the preface, which is its owner's affair.
func (c *Conn) Due() time.Duration {
	switch {
	case c.fragStream == 0 && len(c.aside) == 0, c.cfg.FrameTime == 0, c.state != reading:
		return 0
	case c.fragStream != 0:
		return c.fragSince + c.cfg.FrameTime
	default:
		return c.asideSince + c.cfg.FrameTime
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
	if c.fragStream != 0 || c.asideIsHead() {
		token = tokenSlowHeaders
	}
	return c.fail(connError(EnhanceYourCalm, token))
}

// asideIsHead reports whether the frame that was put aside begins a header
// block.
func (c *Conn) asideIsHead() bool {
	return len(c.aside) >= frameHeaderLen && parseFrameHeader(c.aside).kind == frameHeaders
}
