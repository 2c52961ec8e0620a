package relay

import (
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// Endpoint is where calls can be sent: one worker's place, whichever process
// and address fill it at the time, or an address elsewhere.
type Endpoint struct {
	name  string
	slots *rank.Endpoint
	local bool // started by cabrank: its refusals are understood (R1)

	ready    atomic.Bool
	lastDone atomic.Int64 // when it last answered a call to the end, monotonic; 0: never
}

// AddEndpoint brings in an endpoint that may have n calls at a time. It
// gets none before Up. local says that cabrank has started it, so that a
// refusal by the texts of Options.Refusals is one (R1).
func (r *Relay) AddEndpoint(name string, n int, local bool) *Endpoint {
	r.adding.Lock()
	defer r.adding.Unlock()
	refuses := local && len(r.refusals) > 0
	slots := r.rank.Add(name, rank.EndpointOptions{Slots: n, OnCancel: r.opts.OnCancel, Refuses: refuses})
	e := &Endpoint{name: name, slots: slots, local: local}
	r.each(func(st *stand) {
		u := &upstream{st: st, endpoint: e}
		if !local {
			u.quiet = r.opts.KeepAlive
		}
		st.upstreams = append(st.upstreams, u)
	})
	return e
}

// Up opens the endpoint at an address ("tcp" or "unix"). Connections to an
// earlier address or process finish their calls and get no new ones.
func (r *Relay) Up(e *Endpoint, network, address string) {
	r.each(func(st *stand) { st.upstreamOf(e.slots).move(network, address) })
	e.ready.Store(true)
	deliver(r.rank.SetReady(e.slots, true, r.now(), nil))
	r.checkServing()
}

// Down closes the endpoint: no new calls; those that run go on.
func (r *Relay) Down(e *Endpoint) {
	e.ready.Store(false)
	deliver(r.rank.SetReady(e.slots, false, r.now(), nil))
	r.checkServing()
}

// Activity tells when the endpoint last answered a call to the end (the zero
// time: never) and how many run there now (R6). A call that its caller or its
// deadline ended is no sign of life.
func (r *Relay) Activity(e *Endpoint) (lastFinished time.Time, inFlight int) {
	if at := e.lastDone.Load(); at != 0 {
		lastFinished = r.start.Add(time.Duration(at))
	}
	for _, s := range r.rank.Snapshot().Endpoints {
		if s.Name == e.name {
			inFlight = s.InFlight
		}
	}
	return lastFinished, inFlight
}

// touchEvery is how fine Endpoint.lastDone is: a mark for each call would have
// the cores take its memory from each other at each call.
const touchEvery = time.Millisecond

// touch notes that the endpoint has answered a call to the end.
func (st *stand) touch(e *rank.Endpoint, now time.Duration) {
	last := &st.upstreams[e.Index()].endpoint.lastDone
	if at := time.Duration(last.Load()); at == 0 || now >= at+touchEvery {
		last.Store(int64(now))
	}
}

// readyUpstream returns an upstream of some ready endpoint, in turn; nil if
// there is none.
func (st *stand) readyUpstream() *upstream {
	n := len(st.upstreams)
	if n == 0 {
		return nil
	}
	turn := int(st.relay.rotation.Add(1) % uint32(n))
	for i := range n {
		u := st.upstreams[(turn+i)%n]
		if u.endpoint.ready.Load() {
			return u
		}
	}
	return nil
}
