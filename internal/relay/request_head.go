package relay

import (
	"bytes"
	"net/http"
	"slices"
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/stats"
)

// requestHead is the content of a request's HEADERS. Calls of one connection with the very
// same header block share it.
//
// Concurrency: guarded by the lock of its shard, never changed once a call has it, except
// method, which is set when a worker has answered it.
type requestHead struct {
	refs     int         // references: calls, and the connection that keeps it for its next call
	callerID *callers.ID // of its calls
	same     uint64      // h2.Block.Same, 0: none

	grpc        bool
	bodyless    bool               // a HEAD request: its answer has no content (RFC 9110 9.3.2)
	connect     bool               // a CONNECT request
	ownService  bool               // a service that gRPC itself defines, R7
	notAllowed  bool               // the caller's token does not allow the method
	method      *stats.Method      // nil until a worker has answered it
	rule        *stats.MethodRule  // nil: the call is sent once
	path        []byte             // without its query; kept only while method is nil, or with ownService
	answer      []byte             // the HEADERS of Cabrank's own answer to gRPC; nil: replyHead
	timeout     time.Duration      // grpc-timeout, 0: none
	badTimeout  bool               // grpc-timeout is malformed
	pass        *callers.KnownPass // nil: no token is needed, or it is not checked yet
	hops        int                // cabranks that it has passed, R10
	tooManyHops bool               // hops are more than Options.MaxHops
	key         *callers.Key       // of its caller; nil: callers are not told apart
	lane        uint8              // 0: none
	hash        uint64             // for ring_hash, 0: no key

	// block is the block to send, without grpc-timeout, for the first and any
	// further attempt.
	block     []byte
	listSize  int // size of the header list with the fields that Cabrank adds, as in h2.Block.ListSize
	timeoutAt int // where grpc-timeout was in block, -1: no such field

	// grpc-previous-rpc-attempts of the caller: its number, and where the field is in
	// block; -1: no such field.
	tries, triesAt, triesEnd int

	nextFree *requestHead
}

// headOf returns the requestHead of a header block for one call, which gives it back with
// releaseHead.
func (cc *callerConn) headOf(b *h2.Block, id *callers.ID) *requestHead {
	if h := cc.sameHead(b); h != nil && h.callerID == id && h.pass == cc.pass {
		if h.method == nil && h.grpc {
			h.method = cc.st.relay.methods.Find(h.path)
		}
		h.refs++
		return h
	}
	h := cc.st.newHead(id)
	h.readKind(cc, b)
	h.readTimeout(b)
	h.readHops(cc, b)
	h.readRankFields(cc, b)
	h.keepBlock(cc, b)
	h.listSize = b.ListSize + maxAdded + len(id.Address) + id.ListSize
	if cc.st.tokens.needsToken(cc) {
		h.readPass(cc.pass, b)
	}
	if b.Same != 0 && (h.pass != nil || !cc.st.tokens.needsToken(cc)) {
		cc.keepHead(h, b.Same)
	}
	return h
}

// readPass keeps the caller's pass, and whether it allows the method.
func (h *requestHead) readPass(p *callers.KnownPass, b *h2.Block) {
	if h.pass = p; p != nil {
		path, _ := b.Watched(fieldPath)
		h.notAllowed = !p.Allows(string(nameOf(path.Value)))
	}
}

// keepHead keeps h for the connection's next call.
func (cc *callerConn) keepHead(h *requestHead, same uint64) {
	if cc.head != nil {
		cc.st.releaseHead(cc.head)
	}
	h.same = same
	h.refs++
	cc.head = h
}

// newHead returns an empty requestHead with one reference.
func (st *shardState) newHead(id *callers.ID) *requestHead {
	h := st.freeHeads
	if h == nil {
		h = new(requestHead)
	} else {
		st.freeHeads = h.nextFree
		st.freeHeadCount--
	}
	*h = requestHead{refs: 1, callerID: id, timeoutAt: -1, triesAt: -1}
	return h
}

// releaseHead gives one reference back.
func (st *shardState) releaseHead(h *requestHead) {
	if h.refs--; h.refs > 0 {
		return
	}
	st.Pool().Put(h.block)
	st.Pool().Put(h.path)
	st.Pool().Put(h.answer)
	h.block, h.path, h.answer = nil, nil, nil
	st.keys.Drop(h.key, st.Now())
	h.key, h.callerID = nil, nil
	if st.freeHeadCount < maxFree {
		h.nextFree, st.freeHeads = st.freeHeads, h
		st.freeHeadCount++
	}
}

// releaseBlock frees the header block if no other call shares it: nobody will send it
// again, and a long stream would keep it for nothing.
func (st *shardState) releaseBlock(h *requestHead) {
	if h.refs == 1 {
		st.Pool().Put(h.block)
		h.block = nil
	}
}

// readKind reads whether the request is gRPC, and its method.
func (h *requestHead) readKind(cc *callerConn, b *h2.Block) {
	contentType, found := b.Watched(fieldContentType)
	h.grpc = found && grpcwire.IsGRPC(contentType.Value)
	if h.grpc {
		h.readCodec(cc, contentType.Value)
	}
	verb, found := b.Watched(fieldMethod)
	h.bodyless = found && string(verb.Value) == http.MethodHead
	h.connect = found && string(verb.Value) == http.MethodConnect
	path, found := b.Watched(fieldPath)
	if !found || !h.grpc {
		return
	}
	name := nameOf(path.Value)
	h.ownService = bytes.HasPrefix(name, pathOwn)
	if h.method = cc.st.relay.methods.Find(name); h.method != nil {
		h.rule = h.method.Rule()
	} else {
		h.rule = cc.st.relay.methods.RuleOf(name)
	}
	if h.method == nil || h.ownService {
		h.path = cc.st.Pool().Append(nil, name)
	}
}

// maxCodec is the longest content type that Cabrank's own answers repeat, octets.
const maxCodec = 64

// readCodec prepares an answer with the content type of a caller that names its codec
// (application/grpc+json), as servers do: connect-go takes another content type for an
// error of its own and drops the status.
func (h *requestHead) readCodec(cc *callerConn, contentType []byte) {
	name, _, _ := bytes.Cut(contentType, []byte(";"))
	if name = bytes.TrimRight(name, " \t"); len(name) == len(grpcwire.ContentType) || len(name) > maxCodec {
		return
	}
	h.answer = h2.AppendField(cc.st.Pool().Get(len(name)+32), ":status", "200")
	h.answer = h2.AppendFieldBytes(h.answer, "content-type", name)
}

// replyHead returns the HEADERS of Cabrank's own answer to a gRPC call.
func (c *call) replyHead() []byte {
	if c.head.answer != nil {
		return c.head.answer
	}
	return c.st.relay.replyHead
}

// nameOf returns the path without a query. gRPC has no queries, but some servers ignore
// them, and a query is the caller's secret.
func nameOf(path []byte) []byte {
	name, _, _ := bytes.Cut(path, []byte("?"))
	return name
}

// readRankFields reads what the rank needs beside the method: key, lane, hash.
func (h *requestHead) readRankFields(cc *callerConn, b *h2.Block) {
	conf := cc.st.conf
	h.key = cc.keyOf(b, h.callerID)
	if path, found := b.Watched(fieldPath); found {
		h.lane = cc.st.relay.laneOf(nameOf(path.Value), h.key)
	}
	if conf.fieldBalance >= 0 {
		if w, found := b.Watched(conf.fieldBalance); found {
			h.hash = hashOf(w.Value)
		}
	}
}

// account returns the account of the calls' slot time; nil: callers are not told apart.
func (h *requestHead) account() *rank.Account {
	if h.key == nil {
		return nil
	}
	return h.key.Account
}

// readTimeout reads grpc-timeout.
func (h *requestHead) readTimeout(b *h2.Block) {
	field, found := b.Watched(fieldTimeout)
	if !found || !h.grpc {
		return
	}
	d, err := grpcwire.ParseTimeout(field.Value)
	h.badTimeout = err != nil || field.Count > 1
	// At most 146 years, so that the sum with now does not overflow.
	h.timeout = min(max(d, 1), 1<<62)
}

// fieldSpan is the place of a field in a header block.
type fieldSpan struct {
	field int // its id in the watch list
	h2.Watched
}

// spans appends to into the fields of a request that are written anew or dropped, in their
// order.
func (h *requestHead) spans(cc *callerConn, b *h2.Block, into []fieldSpan) []fieldSpan {
	for _, field := range [...]int{fieldTimeout, fieldForwardedFor, fieldHops, fieldTries, fieldUser, fieldSocket, fieldClient} {
		w, found := b.Watched(field)
		switch {
		case !found || !h.rewrites(cc, field):
		case w.Count > 1 && (field >= fieldUser || field == fieldForwardedFor && h.isForwarded(cc)): // the engine noted only the last one
			into = everyOne(b, field, into)
		default:
			into = inOrder(into, fieldSpan{field, w})
		}
	}
	return into
}

// everyOne adds the spans of all fields with this name.
func everyOne(b *h2.Block, field int, into []fieldSpan) []fieldSpan {
	wanted := watchedFields()[field]
	for rest := b.Enc; len(rest) > 0; {
		name, _, next := h2.NextField(rest)
		if string(name) == wanted {
			into = inOrder(into, fieldSpan{field, h2.Watched{Start: len(b.Enc) - len(rest), End: len(b.Enc) - len(next)}})
		}
		rest = next
	}
	return into
}

// inOrder inserts a span by its start.
func inOrder(into []fieldSpan, c fieldSpan) []fieldSpan {
	at := len(into)
	for at > 0 && into[at-1].Start > c.Start {
		at--
	}
	return slices.Insert(into, at, c)
}

// rewrites reports whether Cabrank writes the field anew, or drops it: callers over sockets do
// not say who they are.
func (h *requestHead) rewrites(cc *callerConn, field int) bool {
	switch field {
	case fieldTimeout:
		return h.grpc
	case fieldForwardedFor:
		return len(h.callerID.Forwarded) > 0
	case fieldTries:
		return h.rule != nil
	case fieldUser, fieldSocket, fieldClient:
		return cc.local == nil
	default:
		return cc.st.relay.settings().MaxHops > 0
	}
}

// keepBlock keeps the request's header block for this and any further attempt. It drops
// grpc-timeout, which each attempt writes anew with the time left, appends the caller's
// address to x-forwarded-for, adds a hop, and notes the place of
// grpc-previous-rpc-attempts.
func (h *requestHead) keepBlock(cc *callerConn, b *h2.Block) {
	head := cc.st.Pool().Get(len(b.Enc) + len(h.callerID.Forwarded) + len(h.callerID.Fields) + len(cc.st.relay.settings().firstHop) + 64)
	var room [4]fieldSpan
	from, hasXFF, hasHops := 0, false, false
	for _, at := range h.spans(cc, b, room[:0]) {
		head = append(head, b.Enc[from:at.Start]...)
		from = at.End
		switch at.field {
		case fieldTimeout:
			h.timeoutAt = len(head)
		case fieldForwardedFor:
			if !hasXFF {
				head, hasXFF = h.appendForwarded(cc, b, head, at.Value), true
			}
		case fieldHops:
			head, hasHops = cc.appendHops(head, h.hops), true
		case fieldTries:
			h.tries, h.triesAt = readTries(at.Value), len(head)
			head = append(head, b.Enc[at.Start:at.End]...)
			h.triesEnd = len(head)
		}
	}
	head = append(head, b.Enc[from:]...)
	if !hasXFF {
		head = append(head, h.callerID.Forwarded...)
	}
	if !hasHops {
		head = append(head, cc.st.relay.settings().firstHop...)
	}
	h.block = append(head, h.callerID.Fields...)
}

// isForwarded reports whether a proxy named the caller.
func (h *requestHead) isForwarded(cc *callerConn) bool {
	return cc.proxied && h.callerID.Address != cc.callerID.Address
}

// appendForwarded writes x-forwarded-for with the caller's address added. A proxy's list goes
// on with other proxies behind the caller; they are dropped, so that workers find the caller
// at the end.
func (h *requestHead) appendForwarded(cc *callerConn, b *h2.Block, head, value []byte) []byte {
	scratch := append(cc.st.scratch[:0], value...)
	if h.isForwarded(cc) {
		_, before, _ := cc.st.forwarded(b)
		scratch = append(scratch[:0], before...)
	}
	if len(scratch) > 0 {
		scratch = append(scratch, ", "...)
	}
	scratch = append(scratch, h.callerID.Address...)
	cc.st.scratch = scratch
	return h2.AppendFieldBytes(head, callers.ForwardedFor, scratch)
}

// route is how a request is served.
type route uint8

const (
	routeCall route = iota
	routeHealthCheck
	routeHealthWatch
	routeHealthList
	routeReflection
)

var (
	pathOwn        = []byte("/grpc.")
	pathHealth     = []byte("/grpc.health.")
	pathCheck      = []byte("/grpc.health.v1.Health/Check")
	pathWatch      = []byte("/grpc.health.v1.Health/Watch")
	pathList       = []byte("/grpc.health.v1.Health/List")
	pathReflection = []byte("/grpc.reflection.")
)

// isCheck reports whether the call asks about health once.
func (h *requestHead) isCheck() bool { return h.ownService && bytes.Equal(h.path, pathCheck) }

// routeOf tells health and reflection calls from ordinary ones (R7). A reflection call above
// maxReflections is an ordinary one.
func (r *Relay) routeOf(h *requestHead) route {
	switch {
	case !h.ownService:
		return routeCall
	case h.isCheck():
		return routeHealthCheck
	case bytes.Equal(h.path, pathWatch):
		return routeHealthWatch
	case bytes.Equal(h.path, pathList):
		return routeHealthList
	case bytes.HasPrefix(h.path, pathReflection) && r.takeReflection():
		return routeReflection
	}
	return routeCall
}
