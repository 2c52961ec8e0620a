package relay

import (
	"log/slog"
	"slices"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

// side is whose connection it is, as a label of a counter.
type side string

const (
	ofCaller side = "caller"
	ofWorker side = "worker"
)

// Reasons for which a connection is ended, beside those of h2.Floods.
const (
	partingProtocol  = "protocol"   // any other breach of HTTP/2
	partingForeign   = "not_http2"  // the first bytes were no preface
	partingClear     = "no_tls"     // TLS is asked for, and it began without
	partingHandshake = "tls"        // its handshake failed, or took too long
	partingSilent    = "no_preface" // nothing has begun in time
	partingIdle      = "idle"       // no call for too long
	partingAge       = "age"        // as old as it may be
	partingFull      = "too_many"   // one connection too many
	partingRoom      = "make_room"  // without a call, to make room for another
	partingAbsent    = "no_answer"  // it had calls, and did not answer a PING
	partingLines     = time.Minute  // at most one line in the log for each reason
)

// partingReasons lists every reason, so that the counters are a closed set.
func partingReasons() []string {
	return append(h2.Floods(), partingProtocol, partingForeign, partingClear, partingHandshake, partingSilent, partingIdle, partingAge, partingFull, partingRoom, partingAbsent)
}

// partings counts the connections that the relay has ended for what their peer
// did. It is one shard's share.
//
// Concurrency: guarded by the lock of its shard.
type partings map[parting]uint64

type parting struct {
	side   side
	reason string
}

// Partings is how many connections were ended, by side ("caller", "worker")
// and reason. Every reason is there, also those that never occurred.
type Partings map[string]map[string]uint64

func newPartings() Partings {
	all := make(Partings)
	for _, s := range []side{ofCaller, ofWorker} {
		all[string(s)] = make(map[string]uint64)
		for _, reason := range partingReasons() {
			all[string(s)][reason] = 0
		}
	}
	return all
}

func (p Partings) add(from partings) {
	for end, n := range from {
		p[string(end.side)][end.reason] += n
	}
}

// partingLog is when the log last had a line about a reason.
type partingLog struct {
	last   time.Duration
	unsaid int // connections since
}

// parted counts a connection whose peer broke a rule, and says so in the log.
// name is who the peer is: an address or an endpoint.
func (st *stand) parted(s side, name string, why *h2.ConnError) {
	reason := why.Reason
	if !slices.Contains(h2.Floods(), reason) {
		reason = partingProtocol
	}
	st.partings[parting{s, reason}]++
	if n, say := st.relay.sayParting(parting{s, reason}, st.Now()); say {
		// Not under the shard's lock: whoever reads the log may be slow.
		go st.relay.settings().Log.Warn("ended a connection for what its peer did", // ends with the line
			slog.String("side", string(s)), slog.String("peer", name), slog.String("reason", reason),
			slog.String("error", why.Error()), slog.Int("unsaid", n))
	}
}

// sayCrowded says that a caller's connection has as many calls as it may: the next
// ones wait in the caller's library, where nobody sees them. One line a minute.
func (st *stand) sayCrowded(name string, most uint32) {
	st.crowdedNext = st.Now() + partingLines
	if n, say := st.relay.sayParting(parting{ofCaller, "crowded"}, st.Now()); say {
		go st.relay.settings().Log.Warn("a connection has as many calls as it may; more wait at its caller", // ends with the line
			slog.String("peer", name), slog.Uint64("max_concurrent_streams", uint64(most)), slog.Int("unsaid", n))
	}
}

// sayNoThread says that a worker had no thread for a call that it was given, and its
// caller was told: its pool is too small for its slots, as a rule. One line a minute.
func (st *stand) sayNoThread(e *Endpoint) {
	if st.Now() < st.noThreadNext {
		return
	}
	st.noThreadNext = st.Now() + partingLines
	if n, say := st.relay.sayParting(parting{ofWorker, "no thread"}, st.Now()); say {
		go st.relay.settings().Log.Warn("a worker says that it has no free thread, or a handler passes that on: start it with as many as CABRANK_THREADS or RAILS_MAX_THREADS says", // ends with the line
			slog.String("worker", e.name), slog.Int("slots", e.size), slog.Int("unsaid", n))
	}
}

// sayParting reports whether the log may have another line about this end, and
// how many connections have ended so without one.
func (r *Relay) sayParting(p parting, now time.Duration) (unsaid int, say bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, known := r.partingLogs[p]
	if known && now < l.last+partingLines {
		l.unsaid++
		r.partingLogs[p] = l
		return 0, false
	}
	r.partingLogs[p] = partingLog{last: now}
	return l.unsaid, true
}
