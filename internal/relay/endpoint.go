package relay

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// Endpoint is where calls can be sent: one worker's place, with its current process and
// address, or an address elsewhere.
//
// Life: AddEndpoint, then Up, Down and Cut in any order, then RemoveEndpoint.
type Endpoint struct {
	upstreams []*upstream // by shardState.number; immutable, each belongs to its shard
	name      string
	slots     *rank.Endpoint
	local     bool // started by Cabrank: its texts of refusal are known (R1)
	size      int  // largest number of calls at a time

	_        [64]byte // fields that change are on other cache lines
	ready    atomic.Bool
	lastDone atomic.Int64 // when it last completed an answer, relay's clock; 0: never
	suspect  atomic.Bool  // the rank knows it as suspect

	described map[string]bool // guarded by Relay.mu; see Describe
}

// AddEndpoint adds an endpoint with n slots, or with n to begin with if Options.SlotsMax is
// set. It gets no calls before Up. local says that Cabrank has started it, so that its
// texts of refusal are understood (R1). It may be called at any time.
func (r *Relay) AddEndpoint(name string, n int, local bool) *Endpoint {
	r.adding.Lock()
	defer r.adding.Unlock()
	o := r.settings()
	e := &Endpoint{name: name, local: local, size: max(n, o.SlotsMax)}
	for _, st := range r.shards {
		u := &upstream{st: st, endpoint: e}
		if !local {
			u.quiet = o.KeepAlive
		}
		e.upstreams = append(e.upstreams, u)
	}
	e.slots = r.rank.Add(name, rank.EndpointOptions{
		Slots: n, Least: o.SlotsMin, Most: o.SlotsMax, OnCancel: o.OnCancel,
		Owner: e,
	})
	r.each(func(st *shardState) { st.upstreams = append(st.upstreams, e.upstreams[st.number]) })
	r.mu.Lock()
	r.endpoints = append(slices.Clip(r.endpoints), e)
	r.mu.Unlock()
	return e
}

// RemoveEndpoint cuts an endpoint and removes it for good, from metrics as well. Its memory
// is freed with its last call. RemoveEndpoint does not wait. The endpoint must not be used
// afterwards.
func (r *Relay) RemoveEndpoint(e *Endpoint) {
	r.Cut(e)
	r.rank.Remove(e.slots, r.now())
	r.each(func(st *shardState) {
		st.upstreams = slices.DeleteFunc(st.upstreams, func(u *upstream) bool { return u.endpoint == e })
	})
	r.mu.Lock()
	r.endpoints = slices.DeleteFunc(slices.Clone(r.endpoints), func(x *Endpoint) bool { return x == e })
	r.mu.Unlock()
	r.gatherServices()
}

// Up opens the endpoint at an address; network is "tcp", "unix", or one of Options.Dial.
// Connections to an earlier address or process finish their calls and get no new ones.
func (r *Relay) Up(e *Endpoint, network, address string) {
	r.each(func(st *shardState) { st.upstreamOf(e.slots).move(network, address) })
	e.suspect.Store(false)
	e.ready.Store(true)
	r.Describe(e, nil) // it may be another process now
	deliver(r.rank.SetReady(e.slots, true, r.now(), nil))
	r.checkServing()
}

// Down closes the endpoint to new calls. Running calls go on.
func (r *Relay) Down(e *Endpoint) {
	e.ready.Store(false)
	e.suspect.Store(false)
	r.Describe(e, nil) // it may be another process now
	deliver(r.rank.SetReady(e.slots, false, r.now(), nil))
	r.checkServing()
}

// Outage says whether the next Up is not expected soon. If so, and no endpoint is up, all
// calls, waiting ones as well, are answered at once that no worker is ready.
func (r *Relay) Outage(outage bool) { deliver(r.rank.SetOutage(outage, r.now(), nil)) }

// answered returns when the endpoint last completed an answer, 0 for never. It may be
// touchEvery too early.
func (e *Endpoint) answered() time.Duration { return time.Duration(e.lastDone.Load()) }

// readyUpstream returns the upstream of a ready endpoint, in turn; nil: no endpoint is ready.
func (st *shardState) readyUpstream() *upstream {
	n := len(st.upstreams)
	if n == 0 {
		return nil
	}
	turn := int(st.relay.reflectionTurn.Add(1) % uint32(n))
	for i := range n {
		u := st.upstreams[(turn+i)%n]
		if u.endpoint.ready.Load() {
			return u
		}
	}
	return nil
}
