package relay

import (
	"errors"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

const (
	// keepAliveAnswer is how long a peer may send nothing after a PING.
	keepAliveAnswer = 20 * time.Second
	// maxKeepAlive is the longest time between two PINGs to an endpoint that complained.
	maxKeepAlive = 2 * time.Hour
)

var errSilent = errors.New("no answer to a PING")

// keepAlive sends a PING to a peer that has been silent for long while calls run there
// (R15). It sends none on connections without calls: servers punish that. It is called
// when the connection's clock has run out, and sets it again.
func (uc *upstreamConn) keepAlive(now time.Duration) {
	st, conn, quiet := uc.upstream.st, uc.link.Conn, uc.upstream.quiet
	if quiet == 0 || uc.link.Closed() {
		return
	}
	next := conn.Heard() + quiet
	switch {
	case uc.pinged != 0 && conn.Heard() <= uc.pinged:
		uc.link.Close(errSilent) // its calls may have run (R4)
		return
	case conn.Streams() == 0:
		uc.pinged, next = 0, now+quiet
	case next > now:
		uc.pinged = 0
	default:
		uc.pinged, next = now, now+keepAliveAnswer
		conn.Ping(keepAlivePing())
	}
	st.SetTimer(&uc.clock, next)
}

// keepAlivePing is the payload of a keepalive PING.
func keepAlivePing() [8]byte { return [8]byte{'t', 'h', 'e', 'r', 'e', '?'} }

// pingLessOften halves the rate of PINGs to an endpoint that complains of a flood.
func (u *upstream) pingLessOften(code h2.ErrCode) {
	if code == h2.EnhanceYourCalm {
		u.quiet = max(u.quiet, min(2*u.quiet, maxKeepAlive))
	}
}
