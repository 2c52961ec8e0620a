package relay

import (
	"slices"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

// side is the peer's side, as a label of a counter.
type side string

const (
	ofCaller side = "caller"
	ofWorker side = "worker"
)

// Reasons to end a connection, beside those of h2.Floods.
const (
	reasonProtocol   = "protocol"   // any other breach of HTTP/2
	reasonNotHTTP2   = "not_http2"  // the first bytes were no preface
	reasonNoTLS      = "no_tls"     // it began without TLS, which is required
	reasonTLS        = "tls"        // its TLS handshake failed or took too long
	reasonNoPreface  = "no_preface" // no preface came in time
	reasonIdle       = "idle"       // no call for too long
	reasonAge        = "age"        // as old as it may be
	reasonTooMany    = "too_many"   // one connection too many
	reasonMakeRoom   = "make_room"  // without a call, to make room for another
	reasonNoAnswer   = "no_answer"  // it had calls, and did not answer a PING
	disconnectLogGap = time.Minute  // at most one line in the log for each reason
)

// disconnectReasons lists every reason, so that the counters are a closed set.
func disconnectReasons() []string {
	return append(h2.Floods(), reasonProtocol, reasonNotHTTP2, reasonNoTLS, reasonTLS, reasonNoPreface, reasonIdle, reasonAge, reasonTooMany, reasonMakeRoom, reasonNoAnswer)
}

// disconnects counts the connections of one shard that the relay ended because of their
// peer.
//
// Concurrency: guarded by the lock of its shard.
type disconnects map[disconnect]uint64

type disconnect struct {
	side   side
	reason string
}

// Disconnects is how many connections were ended, by side ("caller", "worker") and reason,
// with all reasons that never occurred.
type Disconnects map[string]map[string]uint64

func newDisconnects() Disconnects {
	all := make(Disconnects)
	for _, s := range []side{ofCaller, ofWorker} {
		all[string(s)] = make(map[string]uint64)
		for _, reason := range disconnectReasons() {
			all[string(s)][reason] = 0
		}
	}
	return all
}

func (p Disconnects) add(from disconnects) {
	for end, n := range from {
		p[string(end.side)][end.reason] += n
	}
}

// disconnectLog is when the log last had a line about a reason.
type disconnectLog struct {
	last   time.Duration
	unsaid int // connections since
}

// noteBreach counts and logs a connection whose peer broke a rule. name is the peer's: an
// address or an endpoint.
func (st *shardState) noteBreach(s side, name string, why *h2.ConnError) {
	reason := why.Reason
	if !slices.Contains(h2.Floods(), reason) {
		reason = reasonProtocol
	}
	st.noteEnded(disconnect{s, reason}, "ended a connection for what its peer did", "side", string(s), "peer", name, "reason", reason, "error", why.Error())
}

// logCrowded logs that a caller's connection has as many calls as it may: the next ones wait
// unseen in the caller's library.
func (st *shardState) logCrowded(name string, most uint32) {
	st.crowdedNext = st.Now() + disconnectLogGap
	st.warn(disconnect{ofCaller, "crowded"}, "a connection has as many calls as it may; more wait at its caller", "peer", name, "max_concurrent_streams", most)
}

// logNoThread logs that a worker had no thread for a call, and the caller got the refusal: in
// general its pool is too small for its slots.
func (st *shardState) logNoThread(e *Endpoint) {
	if st.Now() < st.noThreadNext {
		return
	}
	st.noThreadNext = st.Now() + disconnectLogGap
	st.warn(disconnect{ofWorker, "no thread"}, "a worker says that it has no free thread, or a handler passes that on: start it with as many as CABRANK_THREADS or RAILS_MAX_THREADS says",
		"worker", e.name, "slots", e.size)
}

// noteEnded counts and logs a connection that Cabrank ends.
func (st *shardState) noteEnded(what disconnect, line string, told ...any) {
	st.disconnects[what]++
	st.warn(what, line, told...)
}

// warn logs a line, at most one a minute about one thing. It does so outside of the shard's
// lock: whoever reads the log may be slow.
func (st *shardState) warn(about disconnect, line string, told ...any) {
	if unsaid, say := st.relay.mayLog(about, st.Now()); say {
		go st.relay.settings().Log.Warn(line, append(told, "unsaid", unsaid)...) //nolint:sloglint // one of a few; it ends with the line
	}
}

// mayLog reports whether the log may have another line about p, and how many such
// connections ended without one since the last.
func (r *Relay) mayLog(p disconnect, now time.Duration) (unsaid int, say bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, known := r.disconnectLogs[p]
	if known && now < l.last+disconnectLogGap {
		l.unsaid++
		r.disconnectLogs[p] = l
		return 0, false
	}
	r.disconnectLogs[p] = disconnectLog{last: now}
	return l.unsaid, true
}
