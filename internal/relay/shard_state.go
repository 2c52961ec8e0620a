package relay

import (
	"slices"
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/head"
	"github.com/cabrank/cabrank/internal/list"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/shard"
	"github.com/cabrank/cabrank/internal/stats"
)

// fieldID returns the index of a name in a watch list, and adds it if needed; -1 for no name.
func fieldID(names *[]string, name string) int {
	if name == "" {
		return -1
	}
	if at := slices.Index(*names, name); at >= 0 {
		return at
	}
	*names = append(*names, name)
	return len(*names) - 1
}

// Windows and buffers of the two sides (R11).
const (
	connWindow = 16 << 20 // credit goes back on receipt, so it bounds bytes per round trip, not memory
	outputHigh = 256 << 10
)

type configs struct {
	down, up h2.Config
	local    h2.Config // of the end of a Local
	proxies  door.Proxies
	heads    *head.Rules

	// Ids of request fields that the options name, -1: none.
	fieldKey, fieldToken int
}

func newConfigs(o Options) *configs {
	names := head.Fields()
	up := h2.NewWatchList(names...)
	key, balance := fieldID(&names, o.Keys.Field()), fieldID(&names, o.BalanceKey)
	token := -1
	if o.Auth != nil {
		token = fieldID(&names, "authorization")
	}
	base := h2.Config{
		Watch: up, MaxHeaderList: o.HeaderList, MaxFrame: o.Limits.Frame,
		// New connections get half of it once half of the budget is used.
		Window: o.Limits.Window, WindowPressed: o.Limits.Window / 2, MaxWindow: o.Limits.MaxWindow,
		ConnWindow: connWindow, OutputHigh: outputHigh,
	}
	c := &configs{down: base, up: base, local: base, proxies: o.Proxies, fieldKey: key, fieldToken: token}
	c.heads = head.NewRules(head.Rules{MaxHops: o.MaxHops, Proxies: o.Proxies, Balance: balance})
	c.down.Server, c.down.MaxStreams, c.down.FrameTime = true, o.MaxStreams, o.Limits.Header
	// Servers on gRPC's C core 1.51 end the connection, with everybody's calls,
	// at a -bin field that is not base64 [E] (R12).
	c.down.Watch = h2.NewWatchList(names...).Base64("-bin")
	c.up.Settled, c.down.Settled, c.down.Excess = settled, callerSettled, excess
	c.local.Settled = localSettled
	c.local.MaxHeaderList *= 2 // an answer's list may be as long, and Cabrank adds to it
	c.down.Allow, c.up.Allow = h2.CallerAllowances(), h2.WorkerAllowances()
	if n := o.Resets; n > 0 { // two seconds' worth at once: deadlines pass together
		c.down.Allow[h2.RapidReset] = h2.Allowance{Burst: 2 * n, Every: time.Second / time.Duration(n)}
	}
	return c
}

// shardState is the relay's part of one shard: its callers, its upstream
// connections, its calls.
//
// Concurrency: guarded by the shard's lock.
type shardState struct {
	*shard.Shard
	relay *Relay
	conf  *configs

	callers        map[*callerConn]struct{}
	ids            callers.IDs
	guests         map[*Guest]struct{} // callers' connections that do not speak HTTP/2
	idleGuests     list.List[Guest]    // guests without a request
	hijackedGuests int                 // the number of hijacked guests
	number         int                 // in Relay.shards and in Endpoint.upstreams
	upstreams      []*upstream         // of endpoints that are not removed, in no order
	watches        map[*call]struct{}
	sheddable      sheddable
	tokens         tokenCache
	free           *call // calls for reuse
	freeCount      int
	made           int // calls in memory, with those for reuse
	heads          head.Reader
	freeAttempts   []*attempt
	keys           keyring
	tally          tally
	retryBudget    stats.BudgetShare
	disconnects    disconnects
	grants         []rank.Notice // scratch
	scratch        []byte
	scratchTrace   []byte
	access         Access // scratch, as the next
	accessPath     []byte
	digits         [16]byte // scratch for a number; on the stack it would escape
	replay         int64    // bytes kept for replays, R3
	replayTotal    int64
	stalls         *stallWatch
	absents        *absentWatch
	crowdedNext    time.Duration // when the log may have another line about a full connection
	noThreadNext   time.Duration // when the log may have another line about a missing thread
	calls          int           // calls that a drain waits for
	draining       bool
}

// maxFree bounds the calls, request heads and attempts that a shard keeps for their next use.
// Calls beyond that many count against the budget.
const maxFree = 1024

func newShardState(r *Relay, s *shard.Shard) *shardState {
	o := r.settings()
	st := &shardState{
		Shard: s, relay: r, conf: o.conf, number: len(r.shards),
		callers:     make(map[*callerConn]struct{}),
		ids:         callers.NewIDs(o.naming.Seed),
		guests:      make(map[*Guest]struct{}),
		watches:     make(map[*call]struct{}),
		retryBudget: stats.BudgetShare{Budget: r.retryBudget},
		disconnects: make(disconnects),
		replayTotal: o.ReplayTotal / int64(o.Shards),
	}
	st.heads = head.Reader{Rules: o.conf.heads, Methods: r.methods, Lanes: lanesOfMethods(o.Lanes), Pool: s.Pool()}
	st.stalls = newStallWatch(st, o.StallTimeout)
	st.absents = newAbsentWatch(st)
	st.tokens = tokenCache{st: st, auth: o.Auth, checks: make(map[string]*tokenCheck), ofSource: make(map[*callers.Source]int)}
	st.keys.Keyring = callers.NewKeyring(&o.naming, r.rank, &r.keysInUse, func(at time.Duration) { st.SetTimer(&st.keys.clock, at) })
	st.keys.clock.Owner = &st.keys
	return st
}

// do runs f under the lock of the shard.
func (st *shardState) do(f func()) {
	st.Lock()
	defer st.Unlock()
	f()
}

// each runs f for every shard in turn, under its lock.
func (r *Relay) each(f func(*shardState)) {
	for _, st := range r.shards {
		st.do(func() { f(st) })
	}
}

// newCall returns an empty call.
func (st *shardState) newCall(caller *callerConn, id *callers.ID) *call {
	c := st.free
	if c == nil {
		c = st.makeCall()
	} else {
		st.free, c.nextFree = c.nextFree, nil
		st.freeCount--
	}
	c.caller, c.callerID, c.started = caller, id, st.Now()
	st.calls++
	if caller.overNetwork {
		st.absents.wind(st.Now())
	}
	return c
}

// makeCall allocates a call.
func (st *shardState) makeCall() *call {
	c := &call{st: st}
	c.down.Owner, c.clock.Owner = c, c
	c.main = st.newAttempt(c)
	if st.made++; st.made > maxFree {
		st.relay.budget.Add(callSize)
	}
	return c
}

// callFinished subtracts a call from those that a drain waits for.
func (st *shardState) callFinished() {
	if st.calls--; st.calls > 0 || !st.draining {
		return
	}
	select {
	case st.relay.idle <- struct{}{}:
	default:
	}
}

// recycle keeps a call for reuse. Its streams are closed, its lease is released, and no grant
// is on its way.
func (st *shardState) recycle(c *call) {
	c.reset()
	if st.freeCount < maxFree {
		c.nextFree, st.free = st.free, c
		st.freeCount++
		return
	}
	st.made--
	st.relay.budget.Add(-callSize)
}
