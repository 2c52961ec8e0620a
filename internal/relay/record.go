package relay

import (
	"maps"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/health"
	"github.com/cabrank/cabrank/internal/rank"
)

// The method label is bounded in number and length: callers choose it, and the metrics page
// repeats each name some forty times.
const (
	// maxMethods is how many methods have a name. A worker must have answered them with
	// another code than UNIMPLEMENTED. All others are "other".
	maxMethods = 200
	// maxUnproven is how many of them may have their name from an answer other than OK.
	// Such an answer proves little: some servers check the method last, after interceptors
	// or the HTTP method.
	maxUnproven = 100
	// maxMethodName is the length of the longest name, octets.
	maxMethodName = 200
)

// otherMethod is the label of everything without a name of its own.
const otherMethod = "other"

// method is one method that a worker is known to have.
type method struct {
	name   string
	id     int // dense, from 1
	inRank *rank.Method
	policy atomic.Pointer[policy] // nil: its calls are sent once
	order  order
	runs   health.Runs
}

// rankMethod returns the rank's record of the call's method.
func (c *call) rankMethod() *rank.Method {
	if c.method == nil {
		return c.st.relay.unnamedMethods.rankMethod(c.head.path, c.st.relay.rank)
	}
	return c.method.inRank
}

// methodOf finds a named method by its path; nil: it has no name.
func (cc *callerConn) methodOf(path []byte) *method {
	if cc.recent == nil || cc.recent.name != string(path) {
		cc.recent = cc.st.methodOf(path)
	}
	return cc.recent
}

func (st *shardState) methodOf(path []byte) *method {
	if m := st.methods[string(path)]; m != nil {
		return m
	}
	r := st.relay
	r.mu.Lock()
	m := r.methods[string(path)]
	r.mu.Unlock()
	if m != nil {
		st.methods[m.name] = m
	}
	return m
}

// learn gives a method its name, if there is room for another. proven says that the answer
// was OK.
func (r *Relay) learn(path []byte, proven bool) *method {
	if !isMethodName(path) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.methods[string(path)]; m != nil || len(r.methods) >= maxMethods {
		return m
	}
	if !proven {
		if r.unproven >= maxUnproven {
			return nil
		}
		r.unproven++
	}
	m := &method{name: string(path), id: len(r.methods) + 1}
	m.policy.Store(r.policyOf(path))
	m.inRank = r.unnamedMethods.name(path, m.name, r.rank)
	r.methods[m.name] = m
	return m
}

// isMethodName reports whether a path may be a label: gRPC's methods are ASCII
// without spaces (Path in gRPC over HTTP/2).
func isMethodName(path []byte) bool {
	for _, c := range path {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return len(path) <= maxMethodName
}

// bounds returns the upper ends of the histograms' buckets, in seconds.
func bounds() []float64 {
	return []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
}

// buckets is the number of bounds plus one: the last bucket has the rest.
const buckets = 17

type histogram struct {
	counts [buckets]uint64
	sum    time.Duration
}

func (h *histogram) observe(d time.Duration, limits *[buckets - 1]time.Duration) {
	h.sum += d
	for i, limit := range limits {
		if d <= limit {
			h.counts[i]++
			return
		}
	}
	h.counts[buckets-1]++
}

// outcomes counts finished calls by status.
type outcomes struct {
	codes [grpcwire.NumCodes]uint64
	http  map[int]uint64 // calls that are not gRPC, by status
}

// count counts a call.
func (o *outcomes) count(c *call) {
	switch {
	case c.grpc || c.httpStatus == 0:
		o.codes[c.code]++
	default:
		if o.http == nil {
			o.http = make(map[int]uint64)
		}
		o.http[c.httpStatus]++
	}
}

func (o *outcomes) add(from *outcomes) {
	for i, n := range from.codes {
		o.codes[i] += n
	}
	for status, n := range from.http {
		if o.http == nil {
			o.http = make(map[int]uint64)
		}
		o.http[status] += n
	}
}

// stats returns the counts by the label of their code.
func (o *outcomes) stats() map[string]uint64 {
	s := make(map[string]uint64)
	for code, n := range o.codes {
		if n > 0 {
			s[grpcwire.Code(code).String()] = n
		}
	}
	for status, n := range o.http {
		if http.StatusText(status) != "" { // a bounded label: the statuses that exist
			s[strconv.Itoa(status)] += n
		} else {
			s[otherMethod] += n
		}
	}
	return s
}

// methodRecord counts the finished calls of one method on one shard.
type methodRecord struct {
	outcomes
	seconds    histogram
	wait       histogram
	work       histogram // of the calls that had a slot
	noDeadline uint64    // calls without a deadline
}

// statsTable is one shard's share of the counters.
type statsTable struct {
	limits          [buckets - 1]time.Duration
	methods         []*methodRecord // by method id; 0 is "other"
	refused         [endings]uint64
	refusedByWorker uint64
	refusalsPassed  uint64 // answers with a text of refusal, of calls that may have run
	moved           uint64
	finishedUnheard uint64 // answers of detached calls, R5
	unheardCut      uint64 // detached calls that did not end in time
	retries         [retryReasons]uint64
	retriesDenied   [retryDenials]uint64
	hedges          [hedgeResults]uint64
	doors           map[string]*outcomes // by Caller.Door
	other           *outcomes            // its entry for calls that are not gRPC
}

func newStatsTable() statsTable {
	t := statsTable{methods: []*methodRecord{new(methodRecord)}, doors: make(map[string]*outcomes)}
	t.other = t.door(httpDoor)
	for i, b := range bounds() {
		t.limits[i] = time.Duration(b * float64(time.Second))
	}
	return t
}

// door returns the counters of a door.
func (t *statsTable) door(name string) *outcomes {
	n := t.doors[name]
	if n == nil {
		n = new(outcomes)
		t.doors[name] = n
	}
	return n
}

func (t *statsTable) of(m *method) *methodRecord {
	if m == nil {
		return t.methods[0]
	}
	for len(t.methods) <= m.id {
		t.methods = append(t.methods, nil)
	}
	if t.methods[m.id] == nil {
		t.methods[m.id] = new(methodRecord)
	}
	return t.methods[m.id]
}

// record counts a finished call. No other place does.
func (st *shardState) record(c *call, now time.Duration) {
	if c.method == nil && c.grpc && c.answered && !c.noThread && c.code != grpcwire.Unimplemented {
		c.method = st.relay.learn(c.head.path, c.code == grpcwire.OK)
	}
	if c.method == nil && c.grpc && c.answered && c.code == grpcwire.Unimplemented {
		st.relay.services.answeredUnimplemented(c.head.path)
	}
	t := &st.stats
	m := t.of(c.method)
	m.count(c)
	if c.deadline == 0 {
		m.noDeadline++
	}
	if c.grpc {
		c.callerID.outcomes.count(c)
	} else {
		t.other.count(c)
	}
	st.logAccess(c, now)
	m.seconds.observe(now-c.started, &t.limits)
	m.wait.observe(c.waited, &t.limits)
	if c.work.any {
		m.work.observe(c.work.total, &t.limits)
		st.recordRun(c, now)
	}
	c.learnOrder()
}

// Stats returns the counters of all shards together.
func (r *Relay) Stats() Stats {
	total := newStatsTable()
	partings := newDisconnects()
	r.each(func(st *shardState) {
		total.add(&st.stats)
		partings.add(st.disconnects)
	})
	out := Stats{Disconnects: partings, Refusals: map[string]uint64{
		"refused_by_worker": total.refusedByWorker, "refusal_passed_on": total.refusalsPassed,
		"moved":            total.moved,
		"finished_unheard": total.finishedUnheard, "unheard_cut": total.unheardCut,
	}, Connections: r.connections.Load(), Accepted: r.accepted.Load(), Buffered: r.budget.Used(), MostConnections: r.mostConnections(), MostBuffered: r.bufferTotal()}
	for why, n := range total.refused {
		out.Refusals[answerOf(ending(why)).token] += n
	}
	out.Retries, out.RetriesDenied = make(map[string]uint64), make(map[string]uint64)
	for why, n := range total.retries {
		out.Retries[retryReason(why).String()] = n
	}
	out.Doors = make(map[string]map[string]uint64)
	for name, n := range total.doors {
		out.Doors[name] = n.stats()
	}
	out.Hedges = make(map[string]uint64)
	for result, n := range total.hedges {
		out.Hedges[hedgeResult(result).String()] = n
	}
	for why, n := range total.retriesDenied {
		out.RetriesDenied[retryDenial(why).String()] = n
	}
	r.mu.Lock()
	names := maps.Clone(r.methods)
	r.mu.Unlock()
	byID := map[int]string{0: otherMethod}
	for name, m := range names {
		byID[m.id] = name
	}
	for id, m := range total.methods {
		if m != nil {
			out.Methods = append(out.Methods, m.stats(byID[id]))
		}
	}
	return out
}

func (t *statsTable) add(from *statsTable) {
	for id, m := range from.methods {
		if m != nil {
			t.of(&method{id: id}).add(m)
		}
	}
	for i, n := range from.refused {
		t.refused[i] += n
	}
	t.refusedByWorker += from.refusedByWorker
	t.refusalsPassed += from.refusalsPassed
	t.moved += from.moved
	t.finishedUnheard += from.finishedUnheard
	t.unheardCut += from.unheardCut
	for i, n := range from.retries {
		t.retries[i] += n
	}
	for i, n := range from.retriesDenied {
		t.retriesDenied[i] += n
	}
	for i, n := range from.hedges {
		t.hedges[i] += n
	}
	for name, n := range from.doors {
		t.door(name).add(n)
	}
}

func (m *methodRecord) add(from *methodRecord) {
	m.outcomes.add(&from.outcomes)
	m.noDeadline += from.noDeadline
	m.seconds.add(&from.seconds)
	m.wait.add(&from.wait)
	m.work.add(&from.work)
}

func (h *histogram) add(from *histogram) {
	for i, n := range from.counts {
		h.counts[i] += n
	}
	h.sum += from.sum
}

func (m *methodRecord) stats(name string) MethodStats {
	return MethodStats{
		Method: name, Codes: m.outcomes.stats(),
		Seconds: m.seconds.stats(), Wait: m.wait.stats(), Work: m.work.stats(), NoDeadline: m.noDeadline,
	}
}

func (h *histogram) stats() Histogram {
	return Histogram{Bounds: bounds(), Counts: append([]uint64(nil), h.counts[:]...), Sum: h.sum.Seconds()}
}
