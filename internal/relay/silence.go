package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/head"
	"github.com/cabrank/cabrank/internal/health"
	"github.com/cabrank/cabrank/internal/stats"
)

// Suspect closes the endpoint for new calls because it is silent, or opens it again (R6).
// Running calls go on, and it counts as ready. The first byte of an answer opens it, too.
func (r *Relay) Suspect(e *Endpoint, suspect bool) {
	e.suspect.Store(suspect)
	deliver(r.rank.SetSuspect(e.slots, suspect, r.now(), nil))
}

// alive reports whether a header block shows that a thread of the worker has worked. A
// refusal does not (R1, R6), nor the first of its two blocks (R2), nor the answer that a
// library sends by itself at the deadline.
func (a *attempt) alive(b *h2.Block, end bool) bool {
	if !end {
		return b.Fields > plainFields || !a.via.upstream.endpoint.local
	}
	w, found := b.Watched(head.FieldGRPCStatus)
	if !found {
		return true
	}
	switch code, _ := grpcwire.ParseCode(w.Value); code {
	case grpcwire.ResourceExhausted:
		return !a.hasRefusalText(b)
	case grpcwire.DeadlineExceeded, grpcwire.Cancelled:
		return !a.call.late()
	default:
		return true
	}
}

// endedByClock reports whether the worker's library ended the call at its deadline: the
// handler may still run.
func (a *attempt) endedByClock() bool {
	return a.code == grpcwire.DeadlineExceeded && a.call.late()
}

// noteAnswer notes a frame of an answer that shows life. Other frames say nothing about the
// worker's health: servers on gRPC's C core send a PING at each request, even while all
// threads of the language above are stuck.
func (a *attempt) noteAnswer(now time.Duration) {
	uc := a.via
	if uc == nil || uc.heard == now {
		return // the attempt has left the connection, or this instant is noted
	}
	if u := uc.upstream; uc.heard == 0 || u.turned.Any() {
		u.turned, u.dials.failures = health.Turned{}, 0
	}
	uc.heard = now
	if e := uc.upstream.endpoint; e.suspect.Load() && e.suspect.CompareAndSwap(true, false) {
		st := a.call.st
		st.grants = st.relay.rank.SetSuspect(e.slots, false, now, st.grants[:0])
		deliver(st.grants)
	}
}

// givenUp counts calls that were given up before a byte of their answer: their handlers may
// run on (R5), and their ends stay unknown.
type givenUp struct {
	calls int
	first time.Duration // when the first of them began
	until time.Duration // when the last of them was given up
}

// upstreamActivity is an upstream's record for Relay.Activity.
type upstreamActivity struct {
	heard  time.Duration // last answer on ended connections
	left   time.Duration // when a call was last given up
	given  givenUp       // since the last answer
	last   time.Duration // when the last call of given began
	lastOf *stats.Method // its method
	path   []byte        // its path
	calls  uint64        // all calls that were sent there
}

// connActivity is the record of an upstream connection: the last byte of an answer, when the
// first call after it was sent completely, and that call's method.
type connActivity struct {
	heard   time.Duration
	asked   time.Duration
	askedOf *stats.Method
}

// owed reports whether the call was sent completely and has no byte of an answer.
func (a *attempt) owed() bool { return !a.answered && a.up.LocalDone() }

// sent notes that a call was sent completely, if it is the first since the last answer.
func (uc *upstreamConn) sent(m *stats.Method, now time.Duration) {
	if uc.asked <= uc.heard {
		uc.asked, uc.askedOf = now, m
	}
}

// noteGivenUp notes a cancelled call, which began at the given instant. Its handler may run
// on and hold a thread (R5).
func (u *upstream) noteGivenUp(a *attempt, began, now time.Duration) {
	u.left = now
	if a.owed() || a.endedByClock() {
		if u.given.until <= u.lastHeard() {
			u.given = givenUp{} // an answer since: a thread has finished
		}
		if u.given.calls++; u.given.calls == 1 {
			u.given.first = began
		}
		u.given.until, u.last, u.lastOf = now, max(u.last, began), a.call.method
		u.path = a.call.appendPath(u.path[:0])
	}
}
