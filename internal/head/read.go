package head

import (
	"bytes"
	"net/http"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/stats"
)

// Rules are the options by which heads are read.
//
// Concurrency: immutable.
type Rules struct {
	MaxHops int          // cabranks that a call may have passed before this one, 0: not counted, R10
	Proxies door.Proxies // who says for whom a call is
	Balance int          // id of the field by which ring_hash places calls, -1: none

	firstHop []byte // x-cabrank-hops for calls that have none, encoded
}

// NewRules completes rules.
func NewRules(r Rules) *Rules {
	if r.MaxHops > 0 {
		r.firstHop = h2.AppendField(nil, hopsName, "1")
	}
	return &r
}

// Forwarded returns the caller that a proxy has named in a request, and the list of who
// stands before it.
func (r *Rules) Forwarded(b *h2.Block) (caller, before string, ok bool) {
	w, _ := b.Watched(FieldForwardedFor)
	list := string(w.Value)
	if w.Count > 1 { // the engine noted only the last one
		list = ""
		for name, value := range h2.Fields(b.Enc).All() {
			if name == callers.ForwardedFor {
				list += "," + value
			}
		}
		list = list[1:]
	}
	return r.Proxies.Caller(list)
}

// From is what is known of a head's caller before it is read.
type From struct {
	ID        *callers.ID
	Key       *callers.Key // with a reference that the head takes over; nil: callers are not told apart
	Peer      string       // the address of the connection
	Proxied   bool         // the peer is one of Rules.Proxies
	InProcess bool         // a door of this process, which says who calls
}

// Reader reads the heads of one shard.
//
// Concurrency: guarded by the lock of its shard.
type Reader struct {
	Rules   *Rules
	Methods *stats.Methods
	Lanes   stats.Patterns[uint8] // by method
	Pool    *h2.Pool

	free    *Head
	kept    int
	scratch []byte
	trace   []byte   // scratch
	digits  [16]byte // scratch for a number; on the stack it would escape
}

// maxFree bounds the heads that a reader keeps for their next use.
const maxFree = 1024

// Read reads a block. The head has one reference.
func (r *Reader) Read(b *h2.Block, from *From) *Head {
	h := r.ReadKind(b, from.ID)
	h.readTimeout(b)
	if field, found := b.Watched(FieldHops); found && r.Rules.MaxHops > 0 {
		// A queue hides a cycle of calls: nothing fails, all slots wait for each other (R10).
		h.Hops = hopsOf(field.Value)
		h.TooManyHops = h.Hops > r.Rules.MaxHops
	}
	h.Key = from.Key
	if path, found := b.Watched(FieldPath); found {
		h.Lane = r.laneOf(NameOf(path.Value), h.Key)
	}
	if r.Rules.Balance >= 0 {
		if w, found := b.Watched(r.Rules.Balance); found {
			h.Hash = hashOf(w.Value)
		}
	}
	r.keepBlock(h, b, from)
	h.listSize = b.ListSize + MaxAdded + len(from.ID.Address) + from.ID.ListSize
	return h
}

// ReadKind reads nothing but whether the request is gRPC, and its method.
func (r *Reader) ReadKind(b *h2.Block, id *callers.ID) *Head {
	h := r.get()
	h.Caller = id
	contentType, found := b.Watched(FieldContentType)
	h.GRPC = found && grpcwire.IsGRPC(contentType.Value)
	if h.GRPC {
		r.readCodec(h, contentType.Value)
	}
	verb, _ := b.Watched(FieldMethod)
	h.Bodyless, h.Connect = string(verb.Value) == http.MethodHead, string(verb.Value) == http.MethodConnect
	path, found := b.Watched(FieldPath)
	if !found || !h.GRPC {
		return h
	}
	name := NameOf(path.Value)
	h.OwnService = bytes.HasPrefix(name, []byte("/grpc."))
	if h.Method = r.Methods.Find(name); h.Method != nil {
		h.Rule = h.Method.Rule()
	} else {
		h.Rule = r.Methods.RuleOf(name)
	}
	if h.Method == nil || h.OwnService {
		h.Path = r.Pool.Append(nil, name)
	}
	return h
}

// Again adds a reference for another call with the same block.
func (r *Reader) Again(h *Head) *Head {
	if h.Method == nil && h.GRPC {
		h.Method = r.Methods.Find(h.Path)
	}
	return h.Share()
}

// get returns an empty head with one reference.
func (r *Reader) get() *Head {
	h := r.free
	if h == nil {
		h = new(Head)
	} else {
		r.free = h.nextFree
		r.kept--
	}
	*h = Head{refs: 1}
	return h
}

// Release gives one reference back. If it was the last one, it returns the key of the head,
// which has no use for it any more.
func (r *Reader) Release(h *Head) (last *callers.Key) {
	if h.refs--; h.refs > 0 {
		return nil
	}
	r.Pool.Put(h.Block)
	r.Pool.Put(h.Path)
	r.Pool.Put(h.Answer)
	last = h.Key
	*h = Head{}
	if r.kept < maxFree {
		h.nextFree, r.free = r.free, h
		r.kept++
	}
	return last
}

// ReleaseBlock frees the block if no other call shares the head: nobody will send it again,
// and a long stream would keep it for nothing.
func (r *Reader) ReleaseBlock(h *Head) {
	if !h.Shared() {
		r.Pool.Put(h.Block)
		h.Block = nil
	}
}

// maxCodec is the longest content type that Cabrank's own answers repeat, octets.
const maxCodec = 64

// readCodec prepares an answer with the content type of a caller that names its codec
// (application/grpc+json), as servers do: connect-go takes another content type for an
// error of its own and drops the status.
func (r *Reader) readCodec(h *Head, contentType []byte) {
	name, _, _ := bytes.Cut(contentType, []byte(";"))
	if name = bytes.TrimRight(name, " \t"); len(name) == len(grpcwire.ContentType) || len(name) > maxCodec {
		return
	}
	h.Answer = h2.AppendField(r.Pool.Get(len(name)+32), ":status", "200")
	h.Answer = h2.AppendFieldBytes(h.Answer, "content-type", name)
}

// NameOf returns a path without its query. gRPC has no queries, but some servers ignore them,
// and a query is the caller's secret.
func NameOf(path []byte) []byte {
	name, _, _ := bytes.Cut(path, []byte("?"))
	return name
}

// laneOf returns the lane of a call: that of its method, or else that of its caller.
func (r *Reader) laneOf(path []byte, k *callers.Key) uint8 {
	lane, found := r.Lanes.Find(path)
	if !found && k != nil {
		lane = k.Lane
	}
	return lane
}

// readTimeout reads grpc-timeout.
func (h *Head) readTimeout(b *h2.Block) {
	field, found := b.Watched(FieldTimeout)
	if !found || !h.GRPC {
		return
	}
	d, err := grpcwire.ParseTimeout(field.Value)
	h.BadTimeout = err != nil || field.Count > 1
	// At most 146 years, so that the sum with now does not overflow.
	h.Timeout = min(max(d, 1), 1<<62)
}

// SetCaller changes the caller of a head that no other call shares; the address stays. key is
// the new caller's, with a reference for the head.
func (r *Reader) SetCaller(h *Head, id *callers.ID, key *callers.Key, path string) {
	head := h.Block[:len(h.Block)-len(h.Caller.Fields)]
	h.listSize += id.ListSize - h.Caller.ListSize
	h.Caller = id
	if h.Key != key {
		h.Key = key
		h.Lane = r.laneOf([]byte(path), key)
	}
	h.Block = r.Pool.Append(head, id.Fields)
}
