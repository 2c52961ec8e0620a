package shard

import (
	"crypto/tls"
	"net"
	"time"
)

// records is the transport below crypto/tls: a connection; or, once a socket of the
// poller drives it, that socket for reads, and memory for writes.
//
// Concurrency: as net.Conn, and guarded by the shard's lock once it has a socket.
type records struct {
	net.Conn

	tls   *tls.Conn
	read  func(p []byte) (int, error) // reads the poller's socket; nil without one
	first []byte                      // to be read before that
	out   []byte                      // to be sent
	sent  uint64
}

// Secure returns the server's end of TLS over a connection. After its handshake, Attach
// drives it like the connection below, if that is a socket.
func Secure(nc net.Conn, config *tls.Config) *tls.Conn {
	r := &records{Conn: nc}
	r.tls = tls.Server(r, config)
	return r.tls
}

// Read implements net.Conn.
func (r *records) Read(p []byte) (int, error) {
	if len(r.first) > 0 {
		n := copy(p, r.first)
		r.first = r.first[n:]
		return n, nil
	}
	if r.read != nil {
		return r.read(p)
	}
	return r.Conn.Read(p)
}

// Write implements net.Conn.
func (r *records) Write(p []byte) (int, error) {
	if r.read != nil {
		r.out = append(r.out, p...)
		return len(p), nil
	}
	return r.Conn.Write(p)
}

// SetWriteDeadline implements net.Conn. Writes to memory need no deadline.
func (r *records) SetWriteDeadline(t time.Time) error {
	if r.read != nil {
		return nil
	}
	return r.Conn.SetWriteDeadline(t)
}

// CloseWrite half-closes the connection below.
func (r *records) CloseWrite() error {
	if half, ok := r.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// NetConn returns the connection below, like NetConn of crypto/tls.
func (r *records) NetConn() net.Conn { return r.Conn }
