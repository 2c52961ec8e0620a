package relay

import (
	"context"
	"errors"
	"iter"
	"net"
	"slices"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/health"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/shard"
)

// dialTimeout bounds the wait for a connection to an endpoint and for its greeting: otherwise
// its calls would wait for ever (R10).
const dialTimeout = 5 * time.Second

var (
	errDrained = errors.New("connection drained")
	errEvicted = errors.New("connection idle, and another wants its place")
	errRetired = errors.New("upstream connection retired")
)

// upstream is one endpoint on one shard: the connection for new calls, and older ones that
// finish theirs.
type upstream struct {
	st       *shardState
	endpoint *Endpoint
	network  string
	address  string
	conns    []*upstreamConn
	dials    backOff
	turned   health.Turned
	upstreamActivity
	served  uint64        // calls that have ended there
	cuts    uint64        // those answered `cabrank: worker draining`
	cutOff  bool          // it gets no calls, see Relay.Cut
	touched time.Duration // when it last completed an answer, at most touchEvery old
	quiet   time.Duration // silence after which the peer gets a PING; 0: never
}

// upstreamConn is one connection to an endpoint.
type upstreamConn struct {
	upstream *upstream
	link     *shard.Link
	connActivity
	retired    bool // it gets no new streams and ends with its last one
	resting    bool // the same, but it may be reused, R14
	resets     resetBudget
	complaints int           // streams that the peer reset as faulty
	failed     bool          // it ended before the greeting
	pinged     time.Duration // when the unanswered PING was sent; 0: none
	clock      shard.Timer   // end of the wait for the greeting, then keepalive
}

// upstreamOf returns the shard's upstream of an endpoint. It outlives RemoveEndpoint while
// calls refer to it.
func (st *shardState) upstreamOf(e *rank.Endpoint) *upstream {
	return e.Owner().(*Endpoint).upstreams[st.number]
}

// conn returns a connection with room for another stream, if need be a new one (R14, R15);
// nil if the endpoint was never up, was cut off or is not to be dialed now (see backOff), or
// if the relay is closing. Streams can be written at once; a new connection sends them after
// the greeting.
func (u *upstream) conn(now time.Duration) *h2.Conn {
	if u.cutOff {
		return nil
	}
	for _, uc := range slices.Backward(u.conns) {
		if !uc.retired && !uc.resting && uc.takes(now) {
			return uc.link.Conn
		}
	}
	if uc := u.reuseResting(now); uc != nil {
		return uc.link.Conn
	}
	if u.network == "" || u.dials.waits(now) || u.st.relay.closing.Load() {
		return nil
	}
	uc := u.newConn()
	go uc.connect(u.st.relay.ctx, u.network, u.address) // ends by dialTimeout or with the relay
	return uc.link.Conn
}

// newConn returns a connection that has no transport yet.
func (u *upstream) newConn() *upstreamConn {
	st := u.st
	uc := &upstreamConn{upstream: u}
	uc.link = st.NewLink(&st.conf.up, workerSide{st}, uc)
	uc.link.Conn.Owner, uc.clock.Owner = uc, uc
	st.SetTimer(&uc.clock, st.Now()+dialTimeout)
	u.conns = append(u.conns, uc)
	return uc
}

func (uc *upstreamConn) connect(ctx context.Context, network, address string) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: network == "tcp"}}
	dial := d.DialContext
	if other := uc.upstream.st.relay.settings().Dial; other != nil && network != "tcp" && network != "unix" {
		dial = other
	}
	nc, err := dial(ctx, network, address)
	uc.upstream.st.do(func() {
		if err != nil {
			uc.link.Close(err)
			return
		}
		uc.link.Attach(nc)
	})
}

// Expired implements shard.Expirer: the greeting has not come, and the calls move (R4); or
// it is time for keepalive.
func (uc *upstreamConn) Expired(_ *shard.Timer, now time.Duration) {
	if !uc.link.Conn.Greeted() {
		uc.link.Close(shard.ErrHandshake)
		return
	}
	uc.keepAlive(now)
}

// settled is called with the first SETTINGS of a worker (h2.Config). It ends calls that were
// opened before and turn out to be too large.
func settled(conn *h2.Conn) {
	uc := conn.Owner.(*upstreamConn)
	now := uc.upstream.st.Now()
	for a := range uc.open(uc.attempts(func(a *attempt) bool { return !a.fits(conn) })) {
		// If it cannot be taken back, the worker has it and will answer.
		if a.unsend() && !a.failInRace(rank.NotSent, now) {
			a.call.fail(endedHeaders, now)
		}
	}
}

// move sends new calls to another address, or to another process at the same address.
func (u *upstream) move(network, address string) {
	u.network, u.address, u.dials, u.turned, u.left, u.given, u.cutOff = network, address, backOff{}, health.Turned{}, 0, givenUp{}, false
	for _, uc := range slices.Clone(u.conns) {
		uc.retire()
	}
}

// retire makes the connection end with its last stream.
func (uc *upstreamConn) retire() {
	uc.retired = true
	uc.streamEnded()
}

func (uc *upstreamConn) streamEnded() {
	if (uc.retired || uc.resting) && !uc.link.Closed() && uc.link.Conn.Streams() == 0 {
		uc.retired = true // it is not reused any more
		uc.link.Finish(errRetired)
	}
}

// Broken is called when the worker broke a rule of the whole connection. Calls that it has
// not seen move; the others end with a bad answer.
func (uc *upstreamConn) Broken(_ *shard.Link, why *h2.ConnError) {
	uc.upstream.st.noteBreach(ofWorker, uc.upstream.endpoint.name, why)
	uc.retired = true
	conn, now := uc.link.Conn, uc.upstream.st.Now()
	for a := range uc.open(uc.attempts(nil)) {
		switch {
		case conn.Unsend(&a.up):
			a.workerLost(false, now)
		case a.call.state == callDetached:
			a.endDetached(rank.Failed, now)
		case !a.failInRace(rank.Failed, now):
			a.call.fail(endedBroken, now)
		}
	}
}

// attempts returns those that are open on the connection and pass which; nil: all.
func (uc *upstreamConn) attempts(which func(*attempt) bool) (found []*attempt) {
	uc.link.Conn.Each(func(s *h2.Stream) {
		if a := s.Owner.(*attempt); which == nil || which(a) {
			found = append(found, a)
		}
	})
	return found
}

// open goes through attempts and skips those that the end of another one has ended.
func (uc *upstreamConn) open(attempts []*attempt) iter.Seq[*attempt] {
	return func(yield func(*attempt) bool) {
		for _, a := range attempts {
			if a.up.Conn() == uc.link.Conn && !yield(a) {
				return
			}
		}
	}
}

// LinkClosed implements shard.Watcher.
func (uc *upstreamConn) LinkClosed(*shard.Link, error) {
	u := uc.upstream
	uc.noteEnd(u.st.Now())
	u.heard = max(u.heard, uc.heard)
	u.st.StopTimer(&uc.clock)
	u.conns = slices.DeleteFunc(u.conns, func(x *upstreamConn) bool { return x == uc })
}

const (
	// maxResets is how many streams may be reset on one upstream connection at once, and
	// resetPause the time until one more may be: 25 a second. Node ends a connection, with
	// everybody's calls, after 1,000 and 33 a second (R14).
	maxResets  = 800
	resetPause = time.Second / 25
	// maxResting bounds the connections of one endpoint and shard that get no new calls
	// because of their resets. Together they regain 400 resets a second, more than one
	// endpoint is likely to need for long.
	maxResting = 16
	// maxComplaints is how many streams a peer may reset as faulty before new
	// calls go to a fresh connection. Node counts requests that it finds invalid
	// and ends a connection at 1,000, however long it has lived [E].
	maxComplaints = 800
)

// resetBudget counts how many resets may still be sent on a connection. It never allows more
// than a count of each reset at its own time.
type resetBudget struct {
	seen uint64        // resets counted so far
	paid time.Duration // when the last of them is regained
}

// left returns how many more resets may be sent, given the number written on the connection
// so far. It can be negative.
func (b *resetBudget) left(written uint64, now time.Duration) int {
	if written != b.seen {
		b.paid = max(b.paid, now) + time.Duration(written-b.seen)*resetPause
		b.seen = written
	}
	if b.paid <= now {
		return maxResets
	}
	return maxResets - int((b.paid-now+resetPause-1)/resetPause)
}

// takes reports whether a new call may be sent on the connection. All of its open streams may
// be reset, so another is opened only while a reset would be left for each (R14).
func (uc *upstreamConn) takes(now time.Duration) bool {
	conn := uc.link.Conn
	if !conn.CanOpen() {
		// A connection without room while it is empty will never have any.
		if conn.Retired() || conn.Streams() == 0 {
			uc.retire()
		}
		return false
	}
	if !uc.fewComplaints() {
		return false
	}
	left := uc.resets.left(conn.Resets(), now)
	if conn.Streams() < left {
		return true
	}
	if left < maxResets/2 { // otherwise it is full, but not worn out
		uc.resting = true
		uc.streamEnded()
	}
	return false
}

// fewComplaints reports whether the peer could find each open stream faulty, and one
// more, without having found maxComplaints so. They are never won back, so a
// connection for which that is false ends with its streams, unless it is merely
// full.
func (uc *upstreamConn) fewComplaints() bool {
	if uc.complaints+uc.link.Conn.Streams() < maxComplaints {
		return true
	}
	if uc.complaints >= maxComplaints/2 {
		uc.retire()
	}
	return false
}

// reuseResting takes back the connection with the most resets left, once so many rest
// that there must not be another; nil before. Only if even that one has none
// left the budget is overdrawn: a connection that may last is better than any
// number of them.
func (u *upstream) reuseResting(now time.Duration) *upstreamConn {
	var best *upstreamConn
	resting, most := 0, 0
	for _, uc := range u.conns {
		if !uc.resting || uc.retired {
			continue
		}
		resting++
		if !uc.link.Conn.CanOpen() || !uc.fewComplaints() {
			continue
		}
		room := uc.resets.left(uc.link.Conn.Resets(), now) - uc.link.Conn.Streams()
		if best == nil || room > most {
			best, most = uc, room
		}
	}
	if resting < maxResting || best == nil {
		return nil
	}
	best.resting = false
	return best
}
