package relay

import (
	"io"
	"net"
	"syscall"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

const (
	// rejectText is the message of the GOAWAY to a rejected caller.
	rejectText = "cabrank: too many connections"
	// maxRejecting bounds the callers that are sent a GOAWAY at a time. For others the
	// connection just ends.
	maxRejecting = 128
	// rejectTime is the longest time for each.
	rejectTime = time.Second
)

// scarce reports whether a connection has one of the last descriptors, which are kept for
// health checks, new workers and control connections. The system gives out the lowest free
// descriptor, so a high one shows that few are left.
func (r *Relay) scarce(nc net.Conn) bool {
	first := r.settings().Limits.Descriptors
	if above, ok := nc.(interface{ NetConn() net.Conn }); ok { // TLS, or bytes that were read
		nc = above.NetConn()
	}
	socket, ok := nc.(syscall.Conn)
	if first == 0 || !ok {
		return false
	}
	scarce := false
	if raw, err := socket.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { scarce = fd >= uintptr(first) }) // a closed one has none
	}
	return scarce
}

// reject ends a connection above the limit before it reads from it. It returns at once.
func (st *shardState) reject(nc net.Conn) {
	r := st.relay
	st.do(func() {
		st.noteEnded(disconnect{ofCaller, reasonTooMany}, "turned a connection away", "peer", callerAddress(nc), "limit", r.mostConnections())
	})
	if r.scarce(nc) {
		_ = nc.Close() // nothing was written
		return
	}
	if r.rejecting.Add(1) > maxRejecting {
		r.rejecting.Add(-1)
		_ = nc.Close() // nothing was written
		return
	}
	go func() { // ends by rejectTime
		defer r.rejecting.Add(-1)
		sendGoAway(nc)
	}()
}

// sendGoAway writes GOAWAY and waits for the caller to close: if a socket is closed with
// unread bytes, the peer loses what was written. It ignores errors.
func sendGoAway(nc net.Conn) {
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(rejectTime))
	if _, err := nc.Write(h2.AppendFarewell(nil, h2.EnhanceYourCalm, rejectText)); err != nil {
		return
	}
	if half, ok := nc.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	const enough = 64 << 10
	_, _ = io.CopyN(io.Discard, nc, enough)
}
