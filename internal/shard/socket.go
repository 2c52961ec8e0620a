package shard

import (
	"errors"
	"io"
	"net"
	"runtime"
	"syscall"
	"time"
)

// readRounds bounds how often one connection may fill the whole read buffer
// before others have their turn.
const readRounds = 4

// socket drives a link over a raw, non-blocking TCP or Unix socket.
//
// The descriptor is used only under the shard's lock and only while the link
// is open, so that it cannot be a reused one.
type socket struct {
	link    *Link
	nc      net.Conn
	raw     syscall.RawConn
	fd      int
	blocked bool // a goroutine waits for the socket to take more
}

func newSocket(l *Link, nc net.Conn, sc syscall.Conn) *socket {
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	d := &socket{link: l, nc: nc, raw: raw, fd: -1}
	if err := raw.Control(func(fd uintptr) { d.fd = int(fd) }); err != nil {
		return nil
	}
	return d
}

// readLoop waits for bytes; the reading itself happens in ready.
func (d *socket) readLoop() {
	err := d.raw.Read(d.ready)
	s := d.link.shard
	s.Lock()
	if err != nil {
		d.link.Close(err)
	}
	s.Unlock()
}

// ready is called when the socket may have bytes. It returns false to wait for
// more and true when the link is over.
func (d *socket) ready(uintptr) bool {
	s := d.link.shard
	for round := 1; ; round++ {
		s.Lock()
		n := d.readOnce(s.Now())
		if n >= muchOutput {
			s.flushMuch(s.Now())
		}
		closed, more := d.link.closed, n == len(s.buf)
		s.Unlock()
		if closed || !more {
			return closed
		}
		if round%readRounds == 0 {
			runtime.Gosched()
		}
	}
}

// readOnce reads once and returns how many bytes there were. As many as the
// buffer holds mean that there may be more; fewer have emptied the socket, and
// the second read, which would only say so, is saved.
func (d *socket) readOnce(now time.Duration) int {
	l := d.link
	if l.closed {
		return 0
	}
	buf := l.shard.buf
	n, err := sysRead(d.fd, buf)
	switch {
	case n > 0:
		l.feed(buf[:n])
		if n < len(buf) {
			l.shard.prove(l, now)
		}
		return n
	case err == nil:
		l.Close(io.EOF)
	case errors.Is(err, syscall.EAGAIN):
	default:
		l.Close(err)
	}
	return 0
}

func (d *socket) probe(now time.Duration) { d.readOnce(now) }

func (d *socket) progress() uint64 { return d.link.Conn.Accepted() }

func (d *socket) flush(now time.Duration) {
	if !d.blocked {
		d.write(now)
	}
}

// write sends what the socket takes, and has a goroutine wait for it where it
// takes no more.
func (d *socket) write(now time.Duration) {
	c := d.link.Conn
	for p := c.Output(); len(p) > 0 && !d.link.closed; p = c.Output() {
		n, err := sysWrite(d.fd, p)
		if n > 0 {
			c.Sent(n)
		}
		if n == len(p) {
			continue
		}
		if err != nil && !errors.Is(err, syscall.EAGAIN) {
			// What the peer said before it left counts: an answer, or a GOAWAY
			// that tells which calls it has not looked at (R4).
			for range readRounds {
				if d.readOnce(now) < len(d.link.shard.buf) {
					break
				}
			}
			d.link.Close(err)
			return
		}
		if !d.blocked {
			d.blocked = true
			go d.waitWritable() // ends when the output is gone or the socket closed
		}
		return
	}
}

func (d *socket) waitWritable() {
	// An error means that the link is closed. The function is called once
	// before the wait: the socket may have become writable meanwhile.
	_ = d.raw.Write(func(uintptr) bool {
		s := d.link.shard
		s.Lock()
		defer s.Unlock()
		if d.link.closed {
			return true
		}
		now := s.Now()
		d.write(now)
		d.blocked = len(d.link.Conn.Output()) > 0
		if !d.blocked {
			d.link.afterFlush(now)
		}
		return !d.blocked
	})
}

func (d *socket) finish() {
	if c, ok := d.nc.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite() // the peer may be gone already
	}
}

// close releases the descriptor from a goroutine of its own: Close waits for
// the readers of the socket, and we may be inside one, under the lock.
func (d *socket) close() { go func() { _ = d.nc.Close() }() }
