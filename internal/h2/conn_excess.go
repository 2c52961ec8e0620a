package h2

// largeBegun is the size up to which an incomplete frame or header block is ordinary.
const largeBegun = defaultMaxFrame

// Excess returns the bytes that a connection uses beyond those that every connection
// may use: for an incomplete frame or header block, and for answers to a peer that does
// not read. 0 is the usual case.
func (c *Conn) Excess() (bytes int) {
	if begun := cap(c.partial) + cap(c.frag); begun > largeBegun {
		bytes += begun
	}
	if c.stuck() {
		bytes += cap(c.out)
	}
	return bytes
}

// stuck reports whether the output is larger than DATA alone can make it.
func (c *Conn) stuck() bool { return cap(c.out) > 2*c.cfg.OutputHigh }

func (c *Conn) tellExcess() {
	if now := c.Excess(); now != c.excess {
		c.excess = now
		c.cfg.Excess(c, now)
	}
}

// GiveUp ends the connection because of its Excess, and frees that at once. It may be
// called where a Handler may call the connection, and by Config.Excess. A peer that
// does not read is not told why.
//
// Errors: as Feed; nil without excess.
func (c *Conn) GiveUp() error {
	if c.Excess() == 0 || c.state == failed {
		return nil
	}
	c.pool.Put(c.partial)
	c.pool.Put(c.frag)
	c.partial, c.frag = nil, nil
	why := connError(EnhanceYourCalm, tokenBuffer)
	if !c.stuck() {
		return c.fail(why)
	}
	c.pool.Put(c.out)
	c.state, c.out, c.outOff = failed, nil, 0
	return why
}
