package relay

import (
	"errors"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

const (
	// keepAliveAnswer is how long a peer may leave a PING unanswered, with no
	// other byte from it either.
	keepAliveAnswer = 20 * time.Second
	// maxKeepAlive bounds the time between two PINGs for an endpoint that has
	// complained of them.
	maxKeepAlive = 2 * time.Hour
)

var errSilent = errors.New("no answer to a PING")

// keepAlive asks a peer that was silent for long while calls run there whether
// it is there at all (R15). A connection without calls is left alone: servers
// punish PINGs on those. It is called when the connection's clock has run out
// and sets it again.
func (uc *upstreamConn) keepAlive(now time.Duration) {
	st, conn, quiet := uc.upstream.st, uc.link.Conn, uc.upstream.quiet
	if quiet == 0 || uc.link.Closed() {
		return
	}
	next := conn.Heard() + quiet
	switch {
	case uc.pinged != 0 && conn.Heard() <= uc.pinged:
		uc.link.Close(errSilent) // R4: nobody knows how far its calls have come
		return
	case conn.Streams() == 0:
		uc.pinged, next = 0, now+quiet
	case next > now:
		uc.pinged = 0
	default:
		uc.pinged, next = now, now+keepAliveAnswer
		conn.Ping(whetherThere())
	}
	st.SetTimer(&uc.clock, next)
}

// whetherThere is what such a PING says.
func whetherThere() [8]byte { return [8]byte{'t', 'h', 'e', 'r', 'e', '?'} }

// calm has an endpoint that complains of a flood be asked half as often.
func (u *upstream) calm(code h2.ErrCode) {
	if code == h2.EnhanceYourCalm {
		u.quiet = max(u.quiet, min(2*u.quiet, maxKeepAlive))
	}
}
