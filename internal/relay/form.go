package relay

import (
	"bytes"
	"net/http"
	"slices"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
)

// form is what the HEADERS of a request say. Calls of one connection that begin
// with the very same block share it.
//
// Concurrency: guarded by the lock of its shard, never changed once a call
// has it, but for method, which workers teach.
type form struct {
	refs int    // calls, and the connection that keeps it for its next one
	who  *who   // whose calls they are
	same uint64 // h2.Block.Same, 0: none

	grpc     bool
	bodyless bool          // a HEAD request: no answer has content (RFC 9110 9.3.2)
	connect  bool          // a CONNECT request
	own      bool          // the path is of a service that gRPC itself defines, R7
	barred   bool          // what its caller has shown does not allow the method
	method   *method       // nil until a worker has answered it before
	policy   *policy       // nil: it is sent once
	path     []byte        // without its query; kept only while method is nil, or where own is true
	answer   []byte        // the HEADERS of an answer of cabrank's own to gRPC; nil: replyHead
	timeout  time.Duration // grpc-timeout, 0: none
	broken   bool          // grpc-timeout is malformed
	pass     *proof        // nil: none is needed, or none was found yet
	hops     int           // cabranks that it has passed, R10
	circling bool          // they are too many
	key      *key          // whose calls they are, nil: no matter
	lane     uint8         // 0: none
	hash     uint64        // for ring_hash, 0: none

	// head is the block to send, without grpc-timeout, for the first and any
	// further attempt.
	head      []byte
	list      int // size of its list with all that cabrank adds, as in h2.Block.ListSize
	timeoutAt int // where grpc-timeout stood in head, -1: there was none

	// grpc-previous-rpc-attempts, if the caller has sent it: the number, and where
	// the field is in head; -1: it is not.
	tries, triesAt, triesEnd int

	nextFree *form
}

// formOf returns the form of a request's block for one call, which gives it
// back with drop.
func (cc *callerConn) formOf(b *h2.Block, w *who) *form {
	if f := cc.form; f != nil && b.Same != 0 && f.same == b.Same && f.who == w && f.pass == cc.pass {
		if f.method == nil && f.grpc {
			f.method = cc.methodOf(f.path)
		}
		f.refs++
		return f
	}
	f := cc.st.newForm(w)
	f.readKind(cc, b)
	f.readTimeout(b)
	f.readHops(cc, b)
	f.readPlace(cc, b)
	f.keepHead(cc, b)
	f.list = b.ListSize + maxAdded + len(w.Address) + w.lists
	if cc.st.gate.asks(cc) {
		f.readPass(cc.pass, b)
	}
	if b.Same != 0 && (f.pass != nil || !cc.st.gate.asks(cc)) {
		cc.keep(f, b.Same)
	}
	return f
}

// readPass keeps what the caller has shown, and whether that is enough for the method.
func (f *form) readPass(p *proof, b *h2.Block) {
	if f.pass = p; p != nil {
		path, _ := b.Watched(fieldPath)
		f.barred = !p.allows(string(nameOf(path.Value)))
	}
}

// keep has the connection's next call look at f first.
func (cc *callerConn) keep(f *form, same uint64) {
	if cc.form != nil {
		cc.st.drop(cc.form)
	}
	f.same = same
	f.refs++
	cc.form = f
}

// newForm returns an empty form with one reference.
func (st *stand) newForm(w *who) *form {
	f := st.freeForms
	if f == nil {
		f = new(form)
	} else {
		st.freeForms = f.nextFree
		st.freeFormCount--
	}
	*f = form{refs: 1, who: w, timeoutAt: -1, triesAt: -1}
	return f
}

// drop gives one reference back.
func (st *stand) drop(f *form) {
	if f.refs--; f.refs > 0 {
		return
	}
	st.Pool().Put(f.head)
	st.Pool().Put(f.path)
	st.Pool().Put(f.answer)
	f.head, f.path, f.answer = nil, nil, nil
	if f.key != nil {
		st.keys.drop(f.key)
		f.key = nil
	}
	f.who = nil
	if st.freeFormCount < maxFree {
		f.nextFree, st.freeForms = st.freeForms, f
		st.freeFormCount++
	}
}

// dropHead frees the block of a form that one call has and nobody will send
// again: a long stream would keep it for nothing.
func (st *stand) dropHead(f *form) {
	if f.refs == 1 {
		st.Pool().Put(f.head)
		f.head = nil
	}
}

// readKind learns which form the caller speaks, and the method.
func (f *form) readKind(cc *callerConn, b *h2.Block) {
	contentType, found := b.Watched(fieldContentType)
	f.grpc = found && grpcwire.IsGRPC(contentType.Value)
	if f.grpc {
		f.readCodec(cc, contentType.Value)
	}
	verb, found := b.Watched(fieldMethod)
	f.bodyless = found && string(verb.Value) == http.MethodHead
	f.connect = found && string(verb.Value) == http.MethodConnect
	path, found := b.Watched(fieldPath)
	if !found || !f.grpc {
		return
	}
	name := nameOf(path.Value)
	f.own = bytes.HasPrefix(name, pathOwn)
	if f.method = cc.methodOf(name); f.method != nil {
		f.policy = f.method.policy.Load()
	} else {
		f.policy = cc.st.relay.policyOf(name)
	}
	if f.method == nil || f.own {
		f.path = cc.st.Pool().Append(nil, name)
	}
}

// maxCodec is the longest content type that is repeated in an answer of cabrank's own.
const maxCodec = 64

// readCodec has a caller that names its codec (application/grpc+json) answered under the
// same name, as servers do: to connect-go another one is an error of its own, by which
// the status is lost.
func (f *form) readCodec(cc *callerConn, contentType []byte) {
	name, _, _ := bytes.Cut(contentType, []byte(";"))
	if name = bytes.TrimRight(name, " \t"); len(name) == len(grpcwire.ContentType) || len(name) > maxCodec {
		return
	}
	f.answer = h2.AppendField(cc.st.Pool().Get(len(name)+32), ":status", "200")
	f.answer = h2.AppendFieldBytes(f.answer, "content-type", name)
}

// replyHead returns the HEADERS of an answer of cabrank's own to a call of gRPC.
func (c *call) replyHead() []byte {
	if c.form.answer != nil {
		return c.form.answer
	}
	return c.st.relay.replyHead
}

// newReplyHead returns them for callers that name no codec.
func newReplyHead() []byte {
	head := h2.AppendField(nil, ":status", "200")
	return h2.AppendField(head, "content-type", grpcwire.ContentType)
}

// nameOf returns the method that a path names. Behind it may stand a query: gRPC has
// none, but some servers pass it over, and what is in it is the caller's secret.
func nameOf(path []byte) []byte {
	name, _, _ := bytes.Cut(path, []byte("?"))
	return name
}

// readPlace learns what the rank goes by beside the method.
func (f *form) readPlace(cc *callerConn, b *h2.Block) {
	conf := cc.st.conf
	f.key = cc.keyOf(b, f.who)
	if path, found := b.Watched(fieldPath); found {
		f.lane = cc.st.relay.laneOf(nameOf(path.Value), f.key)
	}
	if conf.fieldBalance >= 0 {
		if w, found := b.Watched(conf.fieldBalance); found {
			f.hash = hashOf(w.Value)
		}
	}
}

// account returns whose slot time the calls take, nil if that is no matter.
func (f *form) account() *rank.Account {
	if f.key == nil {
		return nil
	}
	return f.key.account
}

// readTimeout reads grpc-timeout.
func (f *form) readTimeout(b *h2.Block) {
	field, found := b.Watched(fieldTimeout)
	if !found || !f.grpc {
		return
	}
	d, err := grpcwire.ParseTimeout(field.Value)
	f.broken = err != nil || field.Count > 1
	// 146 years are as good as any longer time, and their sum with now fits.
	f.timeout = min(max(d, 1), 1<<62)
}

// cut is a field of a request that is not always sent as it came.
type cut struct {
	field int // its id in the watch list
	h2.Watched
}

// cuts finds the fields of a request that are written anew, in their order. It
// appends them to into, which has room for all.
func (f *form) cuts(cc *callerConn, b *h2.Block, into []cut) []cut {
	for _, field := range [...]int{fieldTimeout, fieldForwardedFor, fieldHops, fieldTries} {
		w, found := b.Watched(field)
		if !found || !f.rewrites(cc, field) {
			continue
		}
		if field == fieldForwardedFor && f.isBehind(cc) {
			into = everyOne(b, field, into)
			continue
		}
		into = inOrder(into, cut{field, w})
	}
	if cc.local == nil {
		into = claims(b, into)
	}
	return into
}

// inOrder adds a cut at its place.
func inOrder(into []cut, c cut) []cut {
	at := len(into)
	for at > 0 && into[at-1].Start > c.Start {
		at--
	}
	return slices.Insert(into, at, c)
}

// rewrites reports whether cabrank has a word of its own in a field.
func (f *form) rewrites(cc *callerConn, field int) bool {
	switch field {
	case fieldTimeout:
		return f.grpc
	case fieldForwardedFor:
		return len(f.who.xff) > 0
	case fieldTries:
		return f.policy != nil
	default:
		return cc.st.relay.settings().MaxHops > 0
	}
}

// keepHead keeps the request's header block for this and any further attempt:
// grpc-timeout is cut out, to be written anew each time with what is left of
// it, the caller's address is appended to x-forwarded-for, and the call has one
// hop more. Where grpc-previous-rpc-attempts stands is noted.
func (f *form) keepHead(cc *callerConn, b *h2.Block) {
	head := cc.st.Pool().Get(len(b.Enc) + len(f.who.xff) + len(f.who.shown) + len(cc.st.relay.settings().firstHop) + 64)
	var room [4]cut
	from, hasXFF, hasHops := 0, false, false
	for _, at := range f.cuts(cc, b, room[:0]) {
		head = append(head, b.Enc[from:at.Start]...)
		from = at.End
		switch at.field {
		case fieldTimeout:
			f.timeoutAt = len(head)
		case fieldForwardedFor:
			if !hasXFF {
				head, hasXFF = cc.appendForwarded(head, f.forwarded(cc, b, at.Value), f.who), true
			}
		case fieldHops:
			head, hasHops = cc.appendHops(head, f.hops), true
		case fieldTries:
			f.tries, f.triesAt = readTries(at.Value), len(head)
			head = append(head, b.Enc[at.Start:at.End]...)
			f.triesEnd = len(head)
		}
	}
	head = append(head, b.Enc[from:]...)
	if !hasXFF {
		head = append(head, f.who.xff...)
	}
	if !hasHops {
		head = append(head, cc.st.relay.settings().firstHop...)
	}
	f.head = append(head, f.who.shown...)
}

// isBehind reports whether a proxy has named the caller.
func (f *form) isBehind(cc *callerConn) bool { return cc.proxied && f.who.Address != cc.own.Address }

// forwarded returns what x-forwarded-for says in front of the caller. What stands behind
// it in a proxy's word, which are proxies, is left out: workers find the caller at the end.
func (f *form) forwarded(cc *callerConn, b *h2.Block, value []byte) []byte {
	if f.isBehind(cc) {
		_, before, _ := cc.st.forwarded(b)
		return []byte(before)
	}
	return value
}

// appendForwarded writes x-forwarded-for with the caller's address added.
func (cc *callerConn) appendForwarded(head, value []byte, w *who) []byte {
	scratch := append(cc.st.scratch[:0], value...)
	if len(value) > 0 {
		scratch = append(scratch, ", "...)
	}
	scratch = append(scratch, w.Address...)
	cc.st.scratch = scratch
	return h2.AppendFieldBytes(head, forwardedName, scratch)
}

// way is how a request is served.
type way uint8

const (
	wayCall way = iota
	wayHealthCheck
	wayHealthWatch
	wayHealthList
	wayAside
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
func (f *form) isCheck() bool { return f.own && bytes.Equal(f.path, pathCheck) }

// wayOf tells health and reflection from ordinary calls (R7). A reflection
// call for which there is no place aside is an ordinary one.
func (r *Relay) wayOf(f *form) way {
	switch {
	case !f.own:
		return wayCall
	case f.isCheck():
		return wayHealthCheck
	case bytes.Equal(f.path, pathWatch):
		return wayHealthWatch
	case bytes.Equal(f.path, pathList):
		return wayHealthList
	case bytes.HasPrefix(f.path, pathReflection) && r.takeAside():
		return wayAside
	}
	return wayCall
}
