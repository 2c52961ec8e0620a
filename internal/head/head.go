// Package head reads the head of a request, once: what it asks for, who asks, how long it may
// take, and the block of fields that workers get.
//
// Start from Reader.Read and Head. The package is handed a block and what is known of its
// caller. It does not know calls, connections or shards.
package head

import (
	"slices"
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/stats"
)

// Head is the content of a request's HEADERS. Calls of one connection with the very same block
// share it.
//
// Concurrency: guarded by the lock of its shard, and not changed once a call has it, except
// Method, which is set when a worker has answered it, and by Reader.SetCaller.
type Head struct {
	refs int // calls, and the connection that keeps it for its next call

	Caller *callers.ID        // of its calls
	Key    *callers.Key       // of its caller; nil: callers are not told apart
	Pass   *callers.KnownPass // nil: no token is needed, or it is not checked yet
	Same   uint64             // h2.Block.Same of the block that a connection keeps it for, 0: none

	GRPC        bool
	Bodyless    bool              // a HEAD request: its answer has no content (RFC 9110 9.3.2)
	Connect     bool              // a CONNECT request
	OwnService  bool              // a service that gRPC itself defines, R7
	NotAllowed  bool              // the caller's token does not allow the method
	BadTimeout  bool              // grpc-timeout is malformed
	TooManyHops bool              // Hops are more than Rules.MaxHops
	Lane        uint8             // 0: none
	Method      *stats.Method     // nil until a worker has answered it
	Rule        *stats.MethodRule // nil: the call is sent once
	Path        []byte            // without its query; kept only while Method is nil, or with OwnService
	Answer      []byte            // the HEADERS of Cabrank's own answer to gRPC; nil: the usual ones
	Timeout     time.Duration     // grpc-timeout, 0: none
	Hops        int               // cabranks that it has passed, R10
	Hash        uint64            // for ring_hash, 0: no key

	// Block is the block to send, without grpc-timeout; Parts adds what an attempt has of its
	// own.
	Block    []byte
	listSize int // size of the header list with the fields that Cabrank adds, as in h2.Block.ListSize
	marks    [OwnFields]mark
	order    [OwnFields]Own // in which the first so many marks are in the block
	marked   uint8
	tries    int // grpc-previous-rpc-attempts of the caller

	nextFree *Head
}

// Own is a field that each attempt writes anew.
type Own uint8

// OwnTimeout is grpc-timeout, with the time left; OwnTries is grpc-previous-rpc-attempts, in
// attempts after the first; OwnTrace is traceparent, of calls with spans, and OwnState is
// tracestate.
const (
	OwnTimeout Own = iota
	OwnTries
	OwnTrace
	OwnState
	OwnFields // their number
)

// mark is where a field was in Head.Block.
type mark struct{ at, end uint32 }

// mark notes where a field of an attempt is in the block.
func (h *Head) mark(f Own, at, size int) {
	if slices.Contains(h.order[:h.marked], f) {
		return // the first one counts
	}
	h.marks[f], h.order[h.marked] = mark{uint32(at), uint32(at + size)}, f
	h.marked++
}

// Share adds a reference.
func (h *Head) Share() *Head {
	h.refs++
	return h
}

// Shared reports whether there is another reference.
func (h *Head) Shared() bool { return h.refs > 1 }

// MostTime is how long a call may take from its arrival, by its caller and by the rule of its
// method; 0: as long as it likes.
func (h *Head) MostTime() time.Duration {
	if h.Rule == nil || h.Rule.Timeout == 0 || h.Timeout != 0 && h.Timeout < h.Rule.Timeout {
		return h.Timeout
	}
	return h.Rule.Timeout
}

// Account returns the account of the calls' slot time; nil: callers are not told apart.
func (h *Head) Account() *rank.Account {
	if h.Key == nil {
		return nil
	}
	return h.Key.Account
}

// IsCheck reports whether the call asks about health once.
func (h *Head) IsCheck() bool {
	return h.OwnService && string(h.Path) == "/grpc.health.v1.Health/Check"
}

// SetPass keeps the caller's pass, and whether it allows the method of a path.
func (h *Head) SetPass(p *callers.KnownPass, path string) {
	if h.Pass = p; p != nil {
		h.NotAllowed = !p.Allows(path)
	}
}

// ListSize is the size of the header list of an attempt (RFC 9113 6.5.2); again: it is not the
// first.
func (h *Head) ListSize(again bool) int {
	if again {
		return h.listSize + maxTries
	}
	return h.listSize
}

// Parts appends to into the parts of the block of an attempt. Its own fields go to the places
// of those that the caller sent, or to the end; a nil one leaves the block as it is.
func (h *Head) Parts(into [][]byte, own *[OwnFields][]byte) [][]byte {
	from := uint32(0)
	for _, f := range h.order[:h.marked] {
		if own[f] != nil {
			into = append(into, h.Block[from:h.marks[f].at], own[f])
			from = h.marks[f].end
		}
	}
	into = append(into, h.Block[from:])
	for f := range own {
		if own[f] != nil && !slices.Contains(h.order[:h.marked], Own(f)) {
			into = append(into, own[f])
		}
	}
	return into
}
