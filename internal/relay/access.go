package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/grpcwire"
)

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
	Hops   int // cabranks that it passed before

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
		Tries: c.main.previous, Received: c.received, Sent: c.sent,
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
