package h2

// largeBegun is more than an ordinary frame or header block takes that is not
// complete yet.
const largeBegun = defaultMaxFrame

// Excess returns the bytes that a connection holds beyond what every one may: of a
// frame or header block that does not come to its end, and of answers for a peer
// that does not read. 0 is the usual case.
func (c *Conn) Excess() (bytes int) {
	if begun := cap(c.aside) + cap(c.frag); begun > largeBegun {
		bytes += begun
	}
	if c.stuck() {
		bytes += cap(c.out)
	}
	return bytes
}

// stuck reports whether the output is more than DATA alone can make it.
func (c *Conn) stuck() bool { return cap(c.out) > 2*c.cfg.OutputHigh }

func (c *Conn) tellExcess() {
	if now := c.Excess(); now != c.excess {
		c.excess = now
		c.cfg.Excess(c, now)
	}
}

// GiveUp ends the connection for its Excess, which is free at once. It may be
// called where a Handler may call the connection, and by Config.Excess. A peer that
// does not read is not told why.
//
// Errors: as Feed; nil if there is no excess.
func (c *Conn) GiveUp() error {
	if c.Excess() == 0 || c.state == failed {
		return nil
	}
	c.pool.Put(c.aside)
	c.pool.Put(c.frag)
	c.aside, c.frag = nil, nil
	why := connError(EnhanceYourCalm, tokenBuffer)
	if !c.stuck() {
		return c.fail(why)
	}
	c.pool.Put(c.out)
	c.state, c.out, c.outOff = failed, nil, 0
	return why
}
