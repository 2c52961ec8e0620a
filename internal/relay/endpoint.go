package relay

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// Endpoint is where calls can be sent: one worker's place, whichever process
// and address fill it at the time, or an address elsewhere.
//
// Life: AddEndpoint, then Up, Down and Cut in any order, then RemoveEndpoint.
type Endpoint struct {
	upstreams []*upstream // by the number of the stand; immutable, each belongs to its shard
	name      string
	slots     *rank.Endpoint
	local     bool // started by cabrank: its refusals are understood (R1)
	size      int  // calls that it may have at a time, at most

	_        [64]byte // what changes is on other lines of the processor's cache
	ready    atomic.Bool
	lastDone atomic.Int64 // when it last answered a call to the end, monotonic; 0: never
	suspect  atomic.Bool  // the rank was told so

	described map[string]bool // guarded by Relay.mu; see Describe
}

// AddEndpoint brings in an endpoint that may have n calls at a time, or begins
// with so many under Options.SlotsMax. It gets none before Up. local says that
// cabrank has started it, so that a refusal by the texts of Options.Refusals is one
// (R1). It may be called at any time.
func (r *Relay) AddEndpoint(name string, n int, local bool) *Endpoint {
	r.adding.Lock()
	defer r.adding.Unlock()
	o := r.settings()
	e := &Endpoint{name: name, local: local, size: max(n, o.SlotsMax)}
	for _, st := range r.stands {
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
	r.each(func(st *stand) { st.upstreams = append(st.upstreams, e.upstreams[st.number]) })
	r.mu.Lock()
	r.endpoints = append(slices.Clip(r.endpoints), e)
	r.mu.Unlock()
	return e
}

// RemoveEndpoint takes an endpoint out for good, after a Cut: it is in no metrics
// any more, and its memory goes with the last call that has been there. It waits
// for nothing. Nothing may be asked of the endpoint afterwards.
func (r *Relay) RemoveEndpoint(e *Endpoint) {
	r.Cut(e)
	r.rank.Remove(e.slots, r.now())
	r.each(func(st *stand) {
		st.upstreams = slices.DeleteFunc(st.upstreams, func(u *upstream) bool { return u.endpoint == e })
	})
	r.mu.Lock()
	r.endpoints = slices.DeleteFunc(slices.Clone(r.endpoints), func(x *Endpoint) bool { return x == e })
	r.mu.Unlock()
	r.gatherServices()
}

// Up opens the endpoint at an address ("tcp", "unix", or one of Options.Dial). Connections to an
// earlier address or process finish their calls and get no new ones.
func (r *Relay) Up(e *Endpoint, network, address string) {
	r.each(func(st *stand) { st.upstreamOf(e.slots).move(network, address) })
	e.suspect.Store(false)
	e.ready.Store(true)
	r.forgetServices(e)
	deliver(r.rank.SetReady(e.slots, true, r.now(), nil))
	r.checkServing()
}

// Down closes the endpoint: no new calls; those that run go on.
func (r *Relay) Down(e *Endpoint) {
	e.ready.Store(false)
	e.suspect.Store(false)
	r.forgetServices(e)
	deliver(r.rank.SetReady(e.slots, false, r.now(), nil))
	r.checkServing()
}

// Outage says that whoever calls Up does not expect to do so soon, or that it
// does again. While no endpoint is up then, calls are told at once that no worker
// is ready, those that wait too.
func (r *Relay) Outage(outage bool) { deliver(r.rank.SetOutage(outage, r.now(), nil)) }

// touchEvery is how fine Endpoint.lastDone is: a mark for each call would have
// the cores take its memory from each other at each call.
const touchEvery = time.Millisecond

// touch notes that the endpoint has answered a call to the end.
func (u *upstream) touch(now time.Duration) {
	if now >= u.touched+touchEvery || u.touched == 0 {
		u.touched = now
		u.endpoint.lastDone.Store(int64(now))
	}
}

// answered is when the endpoint last answered a call to the end, 0 for never. It may be
// touchEvery too early.
func (e *Endpoint) answered() time.Duration { return time.Duration(e.lastDone.Load()) }

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
