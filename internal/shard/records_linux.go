package shard

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// sealedAtOnce is how many bytes the engine has to say are encrypted at a time: two records.
const sealedAtOnce = 2 * streamBuffer

// mostHeld is how much may wait to be sent: beyond what was sealed at once there are answers
// of crypto/tls to a peer that asks for new keys, and does not read.
const mostHeld = 2 * sealedAtOnce

// errHeld is the reason of a link whose peer has so many answers to read.
var errHeld = errors.New("answers of TLS that its peer does not read")

// recordsOf returns what is below a connection that Secure has made and that has shaken
// hands, and the connection below that with the bytes of it that were read.
func recordsOf(nc net.Conn) (r *records, below net.Conn, first []byte) {
	if t, ok := nc.(*tls.Conn); ok && t.ConnectionState().HandshakeComplete {
		r, _ = t.NetConn().(*records)
	}
	if r == nil {
		return nil, nc, nil
	}
	if b, ok := r.Conn.(*begun); ok {
		return r, b.Conn, b.first
	}
	return r, r.Conn, nil
}

// Run implements Task: what came behind the handshake may be all that comes.
func (d *socket) Run(time.Duration) {
	if !d.link.closed {
		d.read()
	}
}

// readOpened is readOnce of records. What does not fit the time of a read stays with
// crypto/tls, decrypted.
func (d *socket) readOpened() (n int, more bool) {
	l, s := d.link, d.link.shard
	if s.plain == nil {
		s.plain = new([streamBuffer]byte)
	}
	n, err := d.records.tls.Read(s.plain[:min(d.most, streamBuffer)])
	if n > 0 {
		l.feed(s.plain[:n])
	}
	switch {
	case l.closed: // and perhaps another's
		return n, false
	case len(d.records.out) > mostHeld:
		l.Close(errHeld)
		return n, false
	case err == nil:
		return n, true
	case !errors.Is(err, os.ErrDeadlineExceeded):
		l.Close(err)
	case len(d.records.out) > 0: // crypto/tls has answered
		s.markDirty(l)
	}
	return n, false
}

// readSealed reads for crypto/tls. That there is nothing now is an error that it takes
// for temporary: it goes on where it is.
func (d *socket) readSealed(p []byte) (int, error) {
	if d.drained {
		return 0, os.ErrDeadlineExceeded
	}
	n, err := sysRead(d.fd, p)
	d.drained = n < len(p) && !d.ended
	switch {
	case n > 0:
		return n, nil
	case err == nil:
		return 0, io.EOF
	case errors.Is(err, syscall.EAGAIN):
		d.ended, d.drained = false, true // an end that is not one for reading
		return 0, os.ErrDeadlineExceeded
	}
	return 0, err
}

// output is what the socket is to be sent next.
func (d *socket) output() []byte {
	p, r, s := d.link.Conn.Output(), d.records, d.link.shard
	if r == nil {
		return p
	}
	if len(r.out) == 0 && len(p) > 0 {
		p = p[:min(len(p), sealedAtOnce)]
		r.out = s.sealed[:0]
		_, _ = r.tls.Write(p) // fails when TLS has ended, which reading tells
		s.sealed = r.out[:0]
		d.link.Conn.Sent(len(p))
	}
	if len(r.out) == 0 {
		r.out = nil // the next has no part of the shard's
	}
	return r.out
}

// sent notes that the socket has taken bytes of the output.
func (d *socket) sent(n int) {
	r := d.records
	if r == nil {
		d.link.Conn.Sent(n)
		return
	}
	r.sent += uint64(n)
	r.out = r.out[n:]
}

// keep has the output stay that was sealed and not sent.
func (d *socket) keep() {
	if r := d.records; r != nil {
		r.out = bytes.Clone(r.out)
		d.link.held = true
	}
}

// sayEnd has the peer of TLS know that nothing more comes, if it takes that at once.
func (d *socket) sayEnd() {
	if r := d.records; r != nil {
		_ = r.tls.CloseWrite()
		if len(r.out) > 0 {
			_, _ = sysWrite(d.fd, r.out)
		}
		r.out = nil
	}
}

// give makes an ordinary connection of TLS over a socket that is another's.
func (r *records) give(nc net.Conn) net.Conn {
	r.Conn, r.read = nc, nil
	return r.tls
}
