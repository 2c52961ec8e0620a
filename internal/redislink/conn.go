package redislink

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// conn is one connection.
type conn struct {
	net.Conn

	client *Client
	raw    syscall.RawConn // nil: its end is not looked for
	once   sync.Once

	writing atomic.Bool
	wrote   atomic.Uint64 // what written of the client was, behind the last write
}

// brokenError is why a connection ended, and which: what was not written on that one was not
// sent, whatever others write, such as those that are made anew at the same time.
type brokenError struct {
	error

	of *conn
}

func (e brokenError) Unwrap() error { return e.error }

// wrap names the connection in an error that ends it. TLS asks a deadline's for its type.
func (c *conn) wrap(err error) error {
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return brokenError{err, c}
}

func (c *Client) hold(nc net.Conn) *conn {
	held := &conn{Conn: nc, client: c}
	if plain, ok := nc.(syscall.Conn); ok {
		held.raw, _ = plain.SyscallConn() // nil, if there is none
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[held] = struct{}{}
	return held
}

// errEnded is of a connection that Redis, or what is between, has ended before.
var errEnded = errors.New("the connection has ended")

// Write writes nothing if the other side has ended the connection: nobody reads one on
// which nothing is asked, so that its end is seen first by who writes.
func (c *conn) Write(b []byte) (int, error) {
	if c.raw != nil && hasEnded(c.raw) {
		return 0, c.wrap(errEnded)
	}
	c.writing.Store(true) // before: who reads may be told of the end first
	c.client.writing.Add(1)
	n, err := c.Conn.Write(b)
	if err == nil || n > 0 {
		c.wrote.Store(c.client.written.Add(1))
	}
	c.client.writing.Add(-1) // behind: it is one or the other
	c.writing.Store(false)
	return n, c.wrap(err)
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.wrap(err)
}

// Close closes it.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.client.mu.Lock()
		delete(c.client.conns, c)
		c.client.mu.Unlock()
		c.client.ended.Add(1)
	})
	return c.Conn.Close()
}
