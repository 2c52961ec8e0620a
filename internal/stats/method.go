package stats

import (
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/health"
	"github.com/cabrank/cabrank/internal/rank"
)

const (
	// EnoughRuns is how many runs of a method must be known before silence is judged by them.
	EnoughRuns = 20
	// EnoughAnswers is how many answers prove that the caller speaks first: each came after
	// its request, none before.
	EnoughAnswers = 20
)

// Method is what is counted and learned of one method that a worker is known to have, or of
// all others together.
//
// Concurrency: may be used from anywhere, except as Count and AddTo say.
type Method struct {
	Name   string       // "/package.Service/Method", or "other"
	InRank *rank.Method // the rank's record; nil for the others
	Runs   health.Runs  // how long its workers take to answer

	rule        atomic.Pointer[MethodRule]
	workerFirst atomic.Bool  // a worker has begun an answer before the request
	callerFirst atomic.Int32 // answers that came after the request had begun, at most EnoughAnswers
	shards      []*counts    // each guarded by the lock of its shard; nil: nothing was counted
}

func newMethod(name string, shards int) *Method {
	return &Method{Name: name, shards: make([]*counts, shards)}
}

// Rule returns the rule of the method; nil: its calls are sent once.
func (m *Method) Rule() *MethodRule { return m.rule.Load() }

// UsualRun returns the longest recent run of the method, 0 if too few are known; m may be nil.
func (m *Method) UsualRun() time.Duration {
	if m == nil {
		return 0
	}
	learned := m.InRank.Estimate()
	if learned.Samples < EnoughRuns {
		return 0
	}
	return learned.Longest
}

// WorkerSpokeFirst notes an answer that began before its request.
func (m *Method) WorkerSpokeFirst() { m.workerFirst.Store(true) }

// CallerSpokeFirst notes an answer that came after its request had begun. Once there are
// enough it only reads: all shards share the method.
func (m *Method) CallerSpokeFirst() {
	if m.callerFirst.Load() < EnoughAnswers {
		m.callerFirst.Add(1)
	}
}

// CallerFirst reports whether workers of the method always answer after a message; m may be
// nil.
func (m *Method) CallerFirst() bool {
	return m != nil && !m.workerFirst.Load() && m.callerFirst.Load() >= EnoughAnswers
}

// Ended is a finished call.
type Ended struct {
	Code     grpcwire.Code // gRPC status
	HTTP     int           // HTTP status of a call that is not gRPC, else 0
	Deadline bool          // it had one, of its caller or of a rule
	HadSlot  bool
	Took     time.Duration // from its HEADERS to its end
	Waited   time.Duration // for a slot
	Worked   time.Duration // with a slot
	Exemplar *Exemplar     // of Took; nil: its spans are not recorded
}

// counts are the finished calls of one method on one shard.
type counts struct {
	outcomes      Outcomes
	seconds, wait histogram
	work          histogram // of the calls that had a slot
	noDeadline    uint64
}

// Count counts a call that ended on a shard, under that shard's lock.
func (m *Method) Count(shard int, c *Ended) {
	n := m.shards[shard]
	if n == nil {
		n = new(counts)
		m.shards[shard] = n
	}
	n.outcomes.Count(c.Code, c.HTTP)
	if bucket := n.seconds.observe(c.Took); c.Exemplar != nil {
		n.seconds.show(bucket, *c.Exemplar)
	}
	n.wait.observe(c.Waited)
	if c.HadSlot {
		n.work.observe(c.Worked)
	}
	if !c.Deadline {
		n.noDeadline++
	}
}

// MethodStats counts the finished calls of one method.
type MethodStats struct {
	Method     string            // as Method.Name
	Codes      map[string]uint64 // finished calls by gRPC code name ("OK", "UNAVAILABLE"), or by HTTP status ("404") for calls that are not gRPC
	Seconds    Histogram         // from the call's HEADERS to its end
	Wait       Histogram         // time spent waiting for a slot
	Work       Histogram         // time with a slot, of calls that had one
	NoDeadline uint64            // those without a deadline, of their caller or of a rule
}

// Stats returns the counts of the method without any call: AddTo adds those of each shard.
func (m *Method) Stats() MethodStats {
	return MethodStats{Method: m.Name, Codes: make(map[string]uint64), Seconds: newHistogram(), Wait: newHistogram(), Work: newHistogram()}
}

// AddTo adds the counts of a shard, under that shard's lock.
func (m *Method) AddTo(s *MethodStats, shard int) {
	n := m.shards[shard]
	if n == nil {
		return
	}
	n.outcomes.AddTo(s.Codes)
	n.seconds.addTo(&s.Seconds)
	n.wait.addTo(&s.Wait)
	n.work.addTo(&s.Work)
	s.NoDeadline += n.noDeadline
}
