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

// sealedAtOnce is how many bytes of the engine's output are encrypted at a time: two
// records.
const sealedAtOnce = 2 * streamBuffer

// mostUnsent is how many encrypted bytes may wait to be sent: one sealedAtOnce, and answers
// of crypto/tls to a peer that asks for new keys and does not read.
const mostUnsent = 2 * sealedAtOnce

// errUnsent is the reason of a link with more unsent bytes.
var errUnsent = errors.New("answers of TLS that its peer does not read")

// recordsOf returns the records of a connection from Secure after its handshake, and the
// connection below with the bytes that were read from it.
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

// Run implements Task: it reads bytes that came with the handshake, for which the socket
// may never become ready.
func (d *socket) Run(time.Duration) {
	if !d.link.closed {
		d.read()
	}
}

// readOpened is readOnce for records. Bytes beyond one read stay with crypto/tls,
// decrypted.
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
	case l.closed: // perhaps detached
		return n, false
	case len(d.records.out) > mostUnsent:
		l.Close(errUnsent)
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

// readSealed reads for crypto/tls. Without bytes it returns an error that crypto/tls takes
// as temporary, so that it goes on later.
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
		d.ended, d.drained = false, true // only the other direction has ended
		return 0, os.ErrDeadlineExceeded
	}
	return 0, err
}

// output returns the bytes to send next.
func (d *socket) output() []byte {
	p, r, s := d.link.Conn.Output(), d.records, d.link.shard
	if r == nil {
		return p
	}
	if len(r.out) == 0 && len(p) > 0 {
		p = p[:min(len(p), sealedAtOnce)]
		r.out = s.sealed[:0]
		_, _ = r.tls.Write(p) // fails after TLS has ended; reading reports that
		s.sealed = r.out[:0]
		d.link.Conn.Sent(len(p))
	}
	if len(r.out) == 0 {
		r.out = nil // release the shard's scratch buffer
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

// keepUnsent copies the output that was encrypted and not sent.
func (d *socket) keepUnsent() {
	if r := d.records; r != nil {
		r.out = bytes.Clone(r.out)
		d.link.unsent = true
	}
}

// sayEnd tells the peer of TLS that no more bytes come, if the socket takes that at once.
func (d *socket) sayEnd() {
	if r := d.records; r != nil {
		_ = r.tls.CloseWrite()
		if len(r.out) > 0 {
			_, _ = sysWrite(d.fd, r.out)
		}
		r.out = nil
	}
}

// give makes an ordinary TLS connection over a socket that was detached.
func (r *records) give(nc net.Conn) net.Conn {
	r.Conn, r.read = nc, nil
	return r.tls
}
