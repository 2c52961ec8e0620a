package relay

import (
	"fmt"
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/stats"
)

// event is something that happens to calls beside their ends, as a reason of
// cabrank_refusals_total.
type event uint8

const (
	eventRefused    event = iota // a worker refused its stream
	eventPassedOn                // the answer has the text of a refusal; the call may have run
	eventMoved                   // it moved to another worker
	eventFinished                // a detached call was answered, R5
	eventUnheardCut              // a detached call did not end in time
	events                       // their number
)

func (e event) String() string {
	return [...]string{
		eventRefused: "refused_by_worker", eventPassedOn: "refusal_passed_on", eventMoved: "moved",
		eventFinished: "finished_unheard", eventUnheardCut: "unheard_cut",
	}[e]
}

// tally has the counters of one shard beside those of methods and doors.
type tally struct {
	refused       [endings]uint64
	events        [events]uint64
	retries       [retryReasons]uint64
	retriesDenied [retryDenials]uint64
	hedges        [hedgeResults]uint64
}

// record counts a finished call. No other place does.
func (st *shardState) record(c *call, now time.Duration) {
	if c.method == nil && c.grpc && c.main.answered {
		st.relay.learnMethod(c)
	}
	ended := stats.Ended{
		Code: c.code, HTTP: c.httpStatus, Deadline: c.deadline != 0, HadSlot: c.work.any,
		Took: now - c.started, Waited: c.waited, Worked: c.work.total,
	}
	if c.trace != nil {
		ended.Exemplar = c.endTrace(now)
	}
	byDoor := c.callerID.Outcomes
	if c.grpc {
		ended.HTTP = 0
	} else {
		byDoor = st.ids.Door(httpDoor)
	}
	m := st.relay.methods.OrOther(c.method)
	m.Count(st.number, &ended)
	byDoor.Count(ended.Code, ended.HTTP)
	st.logAccess(c, now)
	if c.work.any {
		c.recordRun(m, now)
	}
	switch {
	case c.method == nil:
	case c.workerFirst:
		m.WorkerSpokeFirst()
	case c.gotData:
		m.CallerSpokeFirst()
	}
}

// learnMethod learns of an answer whether a worker has the method of the call.
func (r *Relay) learnMethod(c *call) {
	switch {
	case c.code == grpcwire.Unimplemented:
		r.services.answeredUnimplemented(c.head.Path)
	case !c.main.noThread:
		c.method = r.methods.Learn(c.head.Path, c.code == grpcwire.OK)
	}
}

// recordRun learns from a finished call that had a slot.
func (c *call) recordRun(m *stats.Method, now time.Duration) {
	switch timeout := c.st.relay.settings().HangTimeout; {
	case c.work.lost && timeout > 0 && c.work.total >= timeout:
		m.Runs.Lost(c.work.total, now)
	case c.main.answered && (c.code != grpcwire.DeadlineExceeded || !c.late()):
		m.Runs.Answered(c.work.first)
	}
}

// Stats is a snapshot of the relay: counters since the process began, and current use.
type Stats struct {
	Methods  []stats.MethodStats
	Refusals map[string]uint64 // calls that Cabrank or a worker refused, ended or moved, by reason
	// Retries counts retries by reason, and RetriesDenied those that were due but not made,
	// by reason. All reasons are there, also those that never occurred.
	Retries, RetriesDenied map[string]uint64

	// Hedges counts hedges by result: sent, of these won and lost, and those that were not
	// sent by reason.
	Hedges map[string]uint64

	// Doors counts finished calls by door, and by gRPC code, or by HTTP status if they are
	// not gRPC. It has every door that has been asked for a call.
	Doors map[string]map[string]uint64

	Disconnects Disconnects // connections that Cabrank ended

	Connections int64  // of callers, now
	Accepted    uint64 // connections of callers
	Buffered    int64  // bytes in buffers that count against Options.BufferTotal, now
	// MostConnections and MostBuffered are the bounds in force, which the memory of a
	// container can make less than those of the options.
	MostConnections, MostBuffered int64
}

// Stats returns the counters of all shards together.
func (r *Relay) Stats() Stats {
	all := Stats{
		Refusals: make(map[string]uint64), Retries: make(map[string]uint64), RetriesDenied: make(map[string]uint64),
		Hedges: make(map[string]uint64), Doors: make(map[string]map[string]uint64), Disconnects: newDisconnects(),
		Connections: r.sources.Open.Load(), Accepted: r.sources.Accepted.Load(), Buffered: r.budget.Used(),
		MostConnections: r.mostConnections(), MostBuffered: r.bufferTotal(),
	}
	methods := r.methods.All()
	for _, m := range methods {
		all.Methods = append(all.Methods, m.Stats())
	}
	r.each(func(st *shardState) {
		for i, m := range methods {
			m.AddTo(&all.Methods[i], st.number)
		}
		st.ids.AddTo(all.Doors)
		all.Disconnects.add(st.disconnects)
		addCounters[ending](all.Refusals, st.tally.refused[:])
		addCounters[event](all.Refusals, st.tally.events[:])
		addCounters[retryReason](all.Retries, st.tally.retries[:])
		addCounters[retryDenial](all.RetriesDenied, st.tally.retriesDenied[:])
		addCounters[hedgeResult](all.Hedges, st.tally.hedges[:])
	})
	return all
}

// addCounters adds counters to those with the names of their indices.
func addCounters[K interface {
	~uint8
	fmt.Stringer
}](all map[string]uint64, counters []uint64) {
	for what, n := range counters {
		if name := K(what).String(); name != "" {
			all[name] += n
		}
	}
}

// Access describes a finished call. It has no values of metadata.
//
// Concurrency: the relay owns it and Path, and uses both again once the function that
// got them has returned.
type Access struct {
	Path   []byte        // as the caller sent it, without a query; at most its first 200 octets
	GRPC   bool          // whether it is a gRPC call
	Code   grpcwire.Code // gRPC status
	Status int           // HTTP status of other calls; 0: the caller has left
	Reason string        // why Cabrank itself ended it, as in cabrank_refusals_total; "": a worker answered
	Worker string        // the last one that had it; "": none

	Caller callers.Caller
	Hops   int      // cabranks that it passed before
	Trace  [16]byte // of which it is a part; zero: of none

	Took   time.Duration // from its head to its end
	Waited time.Duration // in the queue
	Worked time.Duration // with a slot
	Tries  int           // attempts after the first one

	Received, Sent int64 // bytes of messages, from the caller and to it
}

// appendPath appends the path of the call without a query, at most mostPath octets, or
// nothing once the path has been freed.
func (c *call) appendPath(to []byte) []byte {
	switch {
	case c.method != nil:
		return append(to, c.method.Name[:min(len(c.method.Name), mostPath)]...)
	case c.head != nil:
		return append(to, c.head.Path[:min(len(c.head.Path), mostPath)]...)
	}
	return to
}

// logAccess passes the finished call to Options.Access.
func (st *shardState) logAccess(c *call, now time.Duration) {
	tell := st.relay.settings().Access
	if tell == nil {
		return
	}
	a := &st.access
	*a = Access{
		GRPC: c.grpc, Code: c.code, Status: c.httpStatus, Caller: c.callerID.Caller,
		Took: now - c.started, Waited: c.waited, Worked: c.work.total,
		Trace: c.traceID, Tries: c.main.previous, Received: c.received, Sent: c.sent,
	}
	st.accessPath = c.appendPath(st.accessPath[:0])
	a.Path = st.accessPath
	if c.head != nil {
		a.Hops = c.head.Hops
	}
	if c.failedAs != notEnded {
		a.Reason = st.relay.answers[c.failedAs].token
	}
	if c.last != nil {
		a.Worker = c.last.Name()
	}
	if c.grpc {
		a.Status = 0
	}
	tell(a)
	*a = Access{}
}
