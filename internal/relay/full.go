package relay

import (
	"io"
	"net"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

const (
	// fullText is what a caller is told that is one too many.
	fullText = "cabrank: too many connections"
	// maxTurnedAway bounds the callers that are being told; others see the end
	// of their connection and nothing else.
	maxTurnedAway = 32
	// turnAwayTime bounds how long each of them takes.
	turnAwayTime = time.Second
)

// enters counts a caller's connection in, or reports that there is no room.
func (r *Relay) enters() bool {
	if r.connections.Add(1) <= int64(r.settings().Limits.Connections) {
		return true
	}
	r.connections.Add(-1)
	return false
}

// turnAway ends a connection that is one too many, before anything was read
// from it. It returns at once.
func (st *stand) turnAway(nc net.Conn) {
	r := st.relay
	st.do(func() { st.partings[parting{ofCaller, partingFull}]++ })
	if unsaid, say := r.sayParting(parting{ofCaller, partingFull}, r.now()); say {
		r.settings().Log.Warn("turned a connection away", "peer", callerAddress(nc),
			"limit", r.settings().Limits.Connections, "unsaid", unsaid)
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
