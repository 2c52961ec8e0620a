package push

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// conns are the connections that there are. When there are as many as there may be, one
// gives way to a new one, so that nobody shuts the application out: a stranger, which has
// brought no good request yet, or else one that is without a request for long; of the
// address that has most of those the one that came, or did something, first.
//
// Concurrency: every method may be called from anywhere. mu is a leaf.
type conns struct {
	mu      sync.Mutex
	all     map[*conn]struct{}
	leaving bool
}

// conn is a connection that counts, of which some bytes were read.
type conn struct {
	net.Conn

	in    *conns
	from  netip.Prefix // invalid: not known, as of Unix sockets
	first []byte       // to be read before what comes
	end   *time.Timer  // of a stranger

	// Guarded by in.mu.
	silent bool      // its first bytes are waited for
	known  bool      // it has brought a good request
	busy   int       // good requests under way
	wrong  int       // requests that were refused before a good one
	quiet  time.Time // when it came, or its last request ended
}

// enter counts a connection in; nil: there is no room.
func (s *conns) enter(nc net.Conn, now time.Time) *conn {
	c := &conn{Conn: nc, in: s, from: sourceOf(nc), silent: true, quiet: now}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving {
		return nil
	}
	if len(s.all) >= mostConnections {
		least := s.least(now)
		if least == nil {
			return nil
		}
		s.drop(least)
	}
	s.all[c] = struct{}{}
	c.end = time.AfterFunc(strangerTime, func() { _ = c.Close() }) // good stops it
	return c
}

// least returns the connection that gives way to a new one, if any does. It looks at
// mostConnections twice.
func (s *conns) least(now time.Time) *conn {
	for _, known := range []bool{false, true} {
		idle := func(c *conn) bool {
			return c.known == known && c.busy == 0 && (!known || now.Sub(c.quiet) >= patience)
		}
		counts := make(map[netip.Prefix]int)
		for c := range s.all {
			if idle(c) {
				counts[c.from]++
			}
		}
		var least *conn
		for c := range s.all {
			switch {
			case !idle(c):
			case least == nil, counts[c.from] > counts[least.from],
				counts[c.from] == counts[least.from] && c.quiet.Before(least.quiet):
				least = c
			}
		}
		if least != nil {
			return least
		}
	}
	return nil
}

// drop counts a connection out and closes it. The caller has the lock.
func (s *conns) drop(c *conn) {
	if _, is := s.all[c]; is {
		delete(s.all, c)
		c.end.Stop()
	}
	_ = c.Conn.Close()
}

// dropSilent closes connections that have not said anything, now and from now on.
func (s *conns) dropSilent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = true
	for c := range s.all {
		if c.silent {
			s.drop(c)
		}
	}
}

// sourceOf returns what a connection is counted by: its address, or the /64 of it.
func sourceOf(nc net.Conn) netip.Prefix {
	at, ok := nc.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	a := at.AddrPort().Addr().Unmap().WithZone("")
	const network = 64                         // what one host mostly has
	p, _ := a.Prefix(min(a.BitLen(), network)) // of an address that is one
	return p
}

// firstBytes returns the first three bytes of a connection, which it will read again; ""
// if they do not come, or the server leaves.
func (c *conn) firstBytes() string {
	var first [3]byte
	_ = c.SetReadDeadline(time.Now().Add(headerTime))
	if _, err := io.ReadFull(c.Conn, first[:]); err != nil {
		return ""
	}
	_ = c.SetReadDeadline(time.Time{}) // a connection that is gone fails again
	c.first = first[:]
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.silent = false
	return string(first[:])
}

// good notes that a good request has come; done that it has ended.
func (c *conn) good() {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.known = true
	c.busy++
	c.end.Stop()
}

func (c *conn) done() {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.busy--
	c.quiet = time.Now()
}

// bad notes that a request was refused for what it had not, and closes a stranger that
// goes on with that.
func (c *conn) bad() {
	const many = 16
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	if c.wrong++; c.wrong > many && !c.known {
		c.in.drop(c)
	}
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if len(c.first) > 0 {
		n := copy(p, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.in.drop(c)
	return nil
}

// RemoteAddr implements net.Conn. It leads back to the connection: gRPC tells its
// handlers no more of one than this.
func (c *conn) RemoteAddr() net.Addr { return remote{c.Conn.RemoteAddr(), c} }

type remote struct {
	net.Addr

	conn *conn
}
