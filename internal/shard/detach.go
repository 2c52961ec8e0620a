package shard

import (
	"errors"
	"net"
)

// errNoConn is the error of Detach for a link whose transport is not a connection.
var errNoConn = errors.New("the transport is no connection")

// detacher is a driver that can give its transport away.
type detacher interface {
	// detach releases the transport, while the engine, which has never had any output,
	// is being fed. After an error the transport is closed.
	detach() (net.Conn, error)
}

// Detach ends the link and returns its transport, for another protocol: a connection
// whose reads begin with first. The watcher is not told of the end. Detach may only be
// called inside of the watcher's NotHTTP2, with the bytes from there.
//
// Errors: the system has no descriptor left, or the transport is another link of the
// shard; the link has ended as by Close.
// Concurrency: the shard does not use the connection any more.
func (l *Link) Detach(first []byte) (net.Conn, error) {
	d, ok := l.driver.(detacher)
	if !ok {
		l.Close(errNoConn)
		return nil, errNoConn
	}
	nc, err := d.detach()
	l.driver = noTransport{}
	if err != nil {
		l.Close(err)
		return nil, err
	}
	l.closed = true
	l.shard.StopTimer(&l.timer)
	delete(l.shard.links, l)
	l.Conn.Close()
	return &begun{Conn: nc, first: first}, nil
}

// begun is a connection from which some bytes were read.
//
// Concurrency: as net.Conn, but only one Read at a time.
type begun struct {
	net.Conn

	first []byte // the bytes that were read, for the first Reads
}

// Read implements net.Conn.
func (c *begun) Read(p []byte) (int, error) {
	if len(c.first) > 0 {
		n := copy(p, c.first)
		if c.first = c.first[n:]; len(c.first) == 0 {
			c.first = nil // the connection may stay for days
		}
		return n, nil
	}
	return c.Conn.Read(p)
}

// CloseWrite half-closes the connection where its transport can, so that a last
// answer is not destroyed by what the peer still sends.
func (c *begun) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// NetConn returns the connection below, like NetConn of crypto/tls.
func (c *begun) NetConn() net.Conn { return c.Conn }
