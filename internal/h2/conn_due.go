package h2

import "time"

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
