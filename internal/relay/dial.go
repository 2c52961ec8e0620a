package relay

import "time"

// The pause between failed attempts to reach an endpoint (R15). What is short
// against a worker's start and long against a call costs nobody anything; and
// who watches the endpoint (packages worker and discover) takes it out of the
// rank soon after.
const (
	minDialPause = 20 * time.Millisecond
	maxDialPause = time.Second
)

// backOff keeps one endpoint of one shard from being dialed again at once
// after a failure.
type backOff struct {
	failures int           // in a row
	until    time.Duration // no attempt before
}

// waits reports whether there must be no attempt now.
func (b *backOff) waits(now time.Duration) bool { return now < b.until }

// failed notes an attempt that has failed. random is between 0 and 1; it makes
// the pause up to a fifth shorter or longer, so that shards and instances that
// have lost an endpoint together do not come back together.
func (b *backOff) failed(now time.Duration, random float64) {
	pause := maxDialPause
	if b.failures < 8 { // 20 ms, doubled so often, is more than a second
		pause = min(minDialPause<<b.failures, maxDialPause)
	}
	b.failures++
	b.until = now + spread(pause, 0.2, random)
}

// spread makes d up to a part of it shorter or longer. random is between 0 and
// 1.
func spread(d time.Duration, part, random float64) time.Duration {
	return d + time.Duration(float64(d)*part*(2*random-1))
}

// noteEnd looks at the end of a connection: one that came before the endpoint
// had greeted was a failed attempt. It may be called more than once.
func (uc *upstreamConn) noteEnd(now time.Duration) {
	switch u := uc.upstream; {
	case uc.failed || uc.retired:
	case uc.heard != 0:
		u.dials.failures = 0
	case uc.link.Conn.Greeted(): // it was there, and nobody knows yet whether it serves
	default:
		uc.failed = true
		u.dials.failed(now, u.st.relay.settings().Random())
	}
}
