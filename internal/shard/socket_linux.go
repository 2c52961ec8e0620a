package shard

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What one connection may cost in one turn.
const (
	readBytes = 4 * readBuffer
	readTime  = 250 * time.Microsecond
	// firstRead is the size of a connection's first read: it is not known yet how long its
	// bytes take.
	firstRead = 4 << 10
	// leastRead is the least size of a read.
	leastRead = 1 << 10
	// mostOfCaller is the largest size of a read of a caller's connection: the bytes after
	// cheap ones may take a hundred times longer.
	mostOfCaller = 64 << 10
)

// socket drives a link over a raw, non-blocking TCP or Unix socket.
//
// The descriptor is used and closed only under the shard's lock, and used only
// while the link is open, so that it cannot be a reused one.
type socket struct {
	link    *Link
	poller  *poller
	fd      int
	blocked bool // the socket takes no more; its poller will tell when it does
	unread  bool // it is in poller.unread
	most    int  // bytes of its next read
	ended   bool // the peer has sent its last byte, which may not be read yet
	cost    readCost
	records *records // of TLS; nil without TLS
	drained bool     // records have read all bytes, until the next event
}

// newSocket takes over the descriptor of nc; nil if nc is not a socket, or no descriptor
// is left. Called under the lock.
func newSocket(l *Link, nc net.Conn) *socket {
	r, nc, first := recordsOf(nc)
	var sc syscall.Conn
	switch nc := nc.(type) {
	case *net.TCPConn:
		sc = nc
	case *net.UnixConn:
		sc = nc
	default:
		return nil
	}
	p := l.shard.sockets()
	if p == nil {
		return nil
	}
	fd := duplicate(sc)
	if fd < 0 {
		return nil
	}
	d := &socket{link: l, poller: p, fd: fd, most: firstRead, cost: newReadCost(l.shard.now)}
	if err := p.add(d); err != nil {
		_ = unix.Close(fd) // nc is still open
		return nil
	}
	_ = nc.Close() // fd stays open
	if r != nil {
		r.read, r.first, d.records = d.readSealed, first, r
		l.shard.Post(d)
	}
	return d
}

// duplicate returns another descriptor of the same socket, -1 after an error. It is
// non-blocking like the first.
func duplicate(sc syscall.Conn) int {
	fd := -1
	raw, err := sc.SyscallConn()
	if err != nil {
		return -1
	}
	err = raw.Control(func(of uintptr) {
		if n, err := unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			fd = n
		}
	})
	if err != nil {
		return -1
	}
	return fd
}

// sockets returns the shard's poller, nil if it cannot be made.
func (s *Shard) sockets() *poller {
	if s.poller == nil {
		s.poller = newPoller(s)
	}
	return s.poller
}

// ready handles the events of the socket.
func (d *socket) ready(events uint32) {
	if events&pollEnd != 0 {
		d.ended = true
	}
	if events&(unix.EPOLLIN|pollEnd) != 0 {
		d.drained = false
		switch {
		case d.link.broken:
			d.leaveUnread()
		case d.waits():
			d.readLater()
		default:
			d.read()
		}
	}
	if events&unix.EPOLLOUT != 0 && d.blocked && !d.link.closed {
		d.writeOn()
	}
}

// waits reports whether the socket has to wait with others that have cost too much. Bytes
// of a worker are for many callers, and do not wait.
func (d *socket) waits() bool {
	used := d.cost.usedUp(d.link.shard.now)
	return d.link.caller && (used || d.unread)
}

// leaveUnread handles a peer that has broken the rules. The peer has a second to read the
// answer; meanwhile its bytes only fill the system's buffers, for a peer that sends as fast
// as it can would otherwise have the core for that second.
func (d *socket) leaveUnread() {
	if d.ended {
		d.link.Close(io.EOF)
	}
}

// read reads the socket, up to readBytes and readTime. A read that does not fill the buffer
// has emptied the socket, and a second one is not needed, unless the peer's end follows:
// for that no other event comes.
func (d *socket) read() {
	s := d.link.shard
	bytes, spent, more := 0, time.Duration(0), true
	for more && bytes < readBytes && spent < readTime && !d.link.broken {
		began := s.clock()
		n, again := d.readOnce()
		took := s.clock() - began
		d.learn(n, took)
		if n >= muchOutput {
			s.flushMuch()
		}
		more = again && !d.link.closed
		bytes, spent = bytes+n, spent+took
	}
	d.cost.charge(spent)
	switch {
	case d.link.broken && !d.link.closed:
		d.leaveUnread()
	case more:
		d.readLater()
	}
}

// readLater makes the poller go on with the socket after others.
func (d *socket) readLater() {
	if !d.unread {
		d.unread = true
		d.poller.unread = append(d.poller.unread, d)
	}
}

// learn sets the size of the next read to as many bytes as can be handled in readTime: the
// time depends on their content, and a peer may send bytes that take a thousand times
// longer than others. A few bytes tell nothing: the system may just have been busy.
func (d *socket) learn(n int, took time.Duration) {
	if n < leastRead {
		return
	}
	fits := int(int64(n) * int64(readTime) / int64(max(took, 1)))
	switch {
	case fits < d.most:
		d.most = max(fits, leastRead)
	case n == d.most:
		d.most = min(2*d.most, fits, d.bound())
	}
}

// bound is the largest size of a read.
func (d *socket) bound() int {
	if d.records != nil {
		return streamBuffer
	}
	if d.link.caller {
		return mostOfCaller
	}
	return readBuffer
}

// readOnce reads once and returns how many bytes came, and whether more may follow: if the
// buffer is full, or the peer's end follows.
func (d *socket) readOnce() (n int, more bool) {
	l := d.link
	if l.closed {
		return 0, false
	}
	if d.records != nil {
		return d.readOpened()
	}
	buf := l.shard.buf[:d.most]
	n, err := sysRead(d.fd, buf)
	switch {
	case n > 0:
		l.feed(buf[:n])
		return n, n == len(buf) || d.ended
	case err == nil:
		l.Close(io.EOF)
	case errors.Is(err, syscall.EAGAIN):
		d.ended = false // only the other direction has ended
	default:
		l.Close(err)
	}
	return 0, false
}

func (d *socket) progress() uint64 {
	if d.records != nil {
		return d.records.sent
	}
	return d.link.Conn.Accepted()
}

func (d *socket) flush() {
	if !d.blocked {
		d.write()
	}
}

// write sends as much as the socket takes, and then asks the poller for an event when it
// takes more.
func (d *socket) write() {
	for p := d.output(); len(p) > 0 && !d.link.closed; p = d.output() {
		n, err := sysWrite(d.fd, p)
		if n > 0 {
			d.sent(n)
		}
		if n == len(p) {
			continue
		}
		if err != nil && !errors.Is(err, syscall.EAGAIN) {
			d.writeFailed(err)
			return
		}
		d.block()
		return
	}
}

// writeFailed ends the link. It first reads what the peer sent before it left: an answer,
// or a GOAWAY that tells which calls it has not handled (R4).
func (d *socket) writeFailed(err error) {
	d.most, d.drained = readBuffer, false
	for range 4 {
		if _, more := d.readOnce(); !more {
			break
		}
	}
	d.link.Close(err)
}

func (d *socket) block() {
	d.keepUnsent()
	if d.blocked {
		return
	}
	d.blocked = true
	if err := d.poller.await(d, true); err != nil {
		d.link.Close(err) // out of kernel memory: the rest would never be written
	}
}

// writeOn goes on when a socket that was full takes more.
func (d *socket) writeOn() {
	d.link.unsent = false
	d.write()
	if d.link.closed || d.link.unsent || len(d.link.Conn.Output()) > 0 {
		return
	}
	d.blocked = false
	if err := d.poller.await(d, false); err != nil {
		d.link.Close(err)
		return
	}
	d.link.afterFlush(d.link.shard.Now())
}

func (d *socket) finish() {
	d.sayEnd()
	_ = unix.Shutdown(d.fd, unix.SHUT_WR) // the peer may be gone already
}

func (d *socket) close() {
	d.sayEnd()
	d.poller.remove(d)
	_ = unix.Close(d.fd) // an error would change nothing
}

// detach makes an ordinary connection of the socket, with another descriptor. The old one
// is removed from the poller first: the socket stays open, and its events would come under
// a number that another socket may soon have.
func (d *socket) detach() (net.Conn, error) {
	d.poller.remove(d)
	file := os.NewFile(uintptr(d.fd), "socket")
	defer file.Close() // FileConn has made a copy
	nc, err := net.FileConn(file)
	if err == nil && d.records != nil {
		nc = d.records.give(nc)
	}
	return nc, err
}
