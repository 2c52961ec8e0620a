package relay

import (
	"hash/maphash"

	"github.com/cabrank/cabrank/internal/callers"
)

// settings are the options with values derived from them. A reload replaces them as a whole,
// so that several values read from one settings belong together.
//
// Concurrency: immutable.
type settings struct {
	Options

	naming callers.Naming
	conf   *configs
}

func newSettings(o Options, seed maphash.Seed) *settings {
	s := &settings{
		Options: o,
		naming:  callers.Naming{Keys: o.Keys, Lanes: lanesOfKeys(o.Lanes), Seed: seed, Connections: o.Limits.Connections},
	}
	s.conf = newConfigs(o)
	return s
}

// keepFixed copies the options that cannot change in a running relay.
func (o *Options) keepFixed(before *Options) {
	o.Shards, o.ReplayTotal = before.Shards, before.ReplayTotal
	o.Lanes, o.BalanceKey = before.Lanes, before.BalanceKey
	o.Rank.Choose = before.Rank.Choose
	o.SlotsMin, o.SlotsMax = before.SlotsMin, before.SlotsMax
	o.Log, o.Random, o.Nap = before.Log, before.Random, before.Nap
	o.Other, o.HTTP1, o.Access, o.Auth, o.Dial, o.Trace = before.Other, before.HTTP1, before.Access, before.Auth, before.Dial, before.Trace
}

// Reconfigure replaces the options while calls wait and run, but for those that
// stay as New was given them: Shards, ReplayTotal, Lanes, BalanceKey, the choice of
// Rank, SlotsMin and SlotsMax, Log, Random, Nap, Other, HTTP1, Access, Auth, Dial and Trace.
//
// No connection ends, and no call that was let in fails. A call keeps its method's rule, its
// wait and its caller; a connection keeps its windows, limits and lifetime. All other options
// hold from now on.
// Concurrency: may be called from anywhere, also while endpoints come and go.
func (r *Relay) Reconfigure(o Options) {
	r.adding.Lock()
	defer r.adding.Unlock()
	before := r.settings()
	o.keepFixed(&before.Options)
	next := newSettings(o, before.naming.Seed)
	r.set.Store(next)
	r.methods.SetRules(o.Methods)
	r.budget.SetTotal(r.bufferTotal())
	r.retryBudget.SetTerms(o.RetryBudget)
	r.each(func(st *shardState) { st.adopt(before, next) })
	// No shard uses the earlier terms any more.
	if !before.Keys.SameTerms(&next.Keys) {
		r.rank.Retune(next.naming.Terms, r.now())
	}
	deliver(r.rank.Configure(o.rank(), r.now(), nil))
	r.checkServing()
}

// adopt updates the copies of settings in the shard and its connections.
func (st *shardState) adopt(before, next *settings) {
	st.conf, st.heads.Rules = next.conf, next.conf.heads
	st.keys.Naming = &next.naming
	st.stalls.after = next.StallTimeout
	for cc := range st.callers {
		cc.dropHead() // the next call may be another one by these
		cc.proxied = cc.fromNetwork() && st.conf.proxies.Has(cc.callerID.Address)
		if !before.Keys.SameSource(&next.Keys) {
			cc.leaveKey()
			cc.link.Conn.Watch(st.conf.down.Watch)
		}
	}
	if next.KeepAlive == before.KeepAlive {
		return // an endpoint may have asked for less
	}
	for _, u := range st.upstreams {
		if !u.endpoint.local {
			u.quiet = next.KeepAlive
		}
	}
}
