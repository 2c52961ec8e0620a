package relay

import (
	"io"
	"net"
	"syscall"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

const (
	// fullText is what a caller is told that is one too many.
	fullText = "cabrank: too many connections"
	// maxTurnedAway bounds the callers that are being told; others see the end
	// of their connection and nothing else.
	maxTurnedAway = 128
	// turnAwayTime bounds how long each of them takes.
	turnAwayTime = time.Second
)

// scarce reports whether a connection has one of the descriptors that are kept for
// what serves callers: health checks, new workers, the control. The system gives the
// lowest that is free, so whoever gets one above the rest has come when few were left.
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

// turnAway ends a connection that is one too many, before anything was read
// from it. It returns at once.
func (st *stand) turnAway(nc net.Conn) {
	r := st.relay
	st.do(func() { st.partings[parting{ofCaller, partingFull}]++ })
	if unsaid, say := r.sayParting(parting{ofCaller, partingFull}, r.now()); say {
		r.settings().Log.Warn("turned a connection away", "peer", callerAddress(nc),
			"limit", r.mostConnections(), "unsaid", unsaid)
	}
	if r.scarce(nc) {
		_ = nc.Close() // nothing was written, and nothing is waited for
		return
	}
	if r.turning.Add(1) > maxTurnedAway {
		r.turning.Add(-1)
		_ = nc.Close() // nothing was written
		return
	}
	go func() { // ends by turnAwayTime
		defer r.turning.Add(-1)
		sendAway(nc)
	}()
}

// sendAway says GOAWAY and waits for the caller to hang up: closing a socket
// with unread bytes would destroy what was said. Errors change nothing.
func sendAway(nc net.Conn) {
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(turnAwayTime))
	if _, err := nc.Write(h2.AppendFarewell(nil, h2.EnhanceYourCalm, fullText)); err != nil {
		return
	}
	if half, ok := nc.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	const enough = 64 << 10
	_, _ = io.CopyN(io.Discard, nc, enough)
}
