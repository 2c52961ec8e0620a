package redislink

import (
	"errors"
	"net"
	"sync"
	"syscall"
)

// conn is one connection.
type conn struct {
	net.Conn

	client *Client
	raw    syscall.RawConn // nil: its end is not looked for
	once   sync.Once
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
		return 0, errEnded
	}
	c.client.writing.Add(1) // before: who reads may be told of the end first
	n, err := c.Conn.Write(b)
	if err == nil || n > 0 {
		c.client.written.Add(1)
	}
	c.client.writing.Add(-1) // behind: it is one or the other
	return n, err
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
