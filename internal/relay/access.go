package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
)

// Access is what is known of a finished call. Values of metadata are not among it.
//
// Concurrency: it belongs to the relay, and changes when the function that got it has
// returned. So does Path.
type Access struct {
	Path   []byte        // as the caller has sent it, without a query; at most 200 octets of it
	GRPC   bool          // it is of gRPC
	Code   grpcwire.Code // of gRPC
	Status int           // of HTTP, for calls that are not of gRPC; 0: the caller has left
	Reason string        // why cabrank itself has ended it, as in cabrank_refusals_total; "": it has not
	Worker string        // that had it last; "": none had

	Caller Caller
	Hops   int // cabranks that it has passed before

	Took   time.Duration // from its head to its end
	Waited time.Duration // in the queue
	Worked time.Duration // with a slot
	Tries  int           // attempts behind the first one

	Received, Sent int64 // bytes of messages, from the caller and to it
}

// appendPath appends the path of the call, without a query, as far as it is known still:
// at most mostPath octets.
func (c *call) appendPath(to []byte) []byte {
	switch {
	case c.method != nil:
		return append(to, c.method.name[:min(len(c.method.name), mostPath)]...)
	case c.form != nil:
		return append(to, c.form.path[:min(len(c.form.path), mostPath)]...)
	}
	return to
}

// tellAccess has the finished call logged, if anybody logs calls.
func (st *stand) tellAccess(c *call, now time.Duration) {
	tell := st.relay.settings().Access
	if tell == nil {
		return
	}
	a := &st.access
	*a = Access{
		GRPC: c.grpc, Code: c.code, Status: c.httpStatus, Caller: c.who.Caller,
		Took: now - c.started, Waited: c.waited, Worked: c.work.total,
		Tries: c.previous, Received: c.received, Sent: c.sent,
	}
	st.accessPath = c.appendPath(st.accessPath[:0])
	a.Path = st.accessPath
	if c.form != nil {
		a.Hops = c.form.hops
	}
	if c.failed {
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
