package relay

import "time"

// The pause between failed attempts to reach an endpoint (R15): short against a worker's
// start, long against a call. Packages worker and discover take an endpoint out of the
// rank soon after its first failure.
const (
	minDialPause = 20 * time.Millisecond
	maxDialPause = time.Second
)

// backOff makes one shard wait before it dials an endpoint again after a failure.
type backOff struct {
	failures int           // in succession
	until    time.Duration // no dial before
}

// waits reports whether the endpoint must not be dialed now.
func (b *backOff) waits(now time.Duration) bool { return now < b.until }

// failed notes a failed attempt. random, between 0 and 1, makes the pause up to a fifth
// shorter or longer, so that shards and instances that lost an endpoint together do not
// dial it together.
func (b *backOff) failed(now time.Duration, random float64) {
	pause := maxDialPause
	if b.failures < 8 { // 20 ms, doubled so often, is more than a second
		pause = min(minDialPause<<b.failures, maxDialPause)
	}
	b.failures++
	b.until = now + spread(pause, 0.2, random)
}

// spread makes d shorter or longer by up to the given part. random is between 0 and 1.
func spread(d time.Duration, part, random float64) time.Duration {
	return d + time.Duration(float64(d)*part*(2*random-1))
}

// noteEnd counts the end of a connection as a failed dial if the endpoint had not sent
// its SETTINGS. It may be called more than once.
func (uc *upstreamConn) noteEnd(now time.Duration) {
	switch u := uc.upstream; {
	case uc.failed || uc.retired:
	case uc.heard != 0:
		u.dials.failures = 0
	case uc.link.Conn.Greeted(): // reachable, but it may not serve calls
	default:
		uc.failed = true
		u.dials.failed(now, u.st.relay.settings().Random())
	}
}
