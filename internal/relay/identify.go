package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/head"
	"github.com/cabrank/cabrank/internal/shard"
)

// The doors of callers over sockets, by protocol.
const (
	socketDoor = "grpc"
	httpDoor   = "http" // not gRPC: passed on as it is
)

// identify returns the caller of the call that begins with a block on a stream of the
// connection; nil if the call was given up.
func (cc *callerConn) identify(stream uint32, b *h2.Block) *callers.ID {
	switch h := cc.sameHead(b); {
	case cc.local != nil:
		return cc.identifyLocal(stream, b)
	case !cc.st.tokens.needsToken(cc):
		if h != nil {
			return h.Caller
		}
		return cc.identifyForwarded(b)
	case h != nil && cc.st.tokens.valid(h.Pass):
		cc.pass = h.Pass
		return h.Caller
	}
	cc.pass = cc.cachedPass(b)
	return cc.withPass(cc.pass, cc.identifyForwarded(b))
}

// sameHead returns the head of the last call, if the next one has the very same block.
func (cc *callerConn) sameHead(b *h2.Block) *head.Head {
	if h := cc.head; h != nil && b.Same != 0 && h.Same == b.Same {
		return h
	}
	return nil
}

// identifyLocal is identify for a connection in this process.
func (cc *callerConn) identifyLocal(stream uint32, b *h2.Block) *callers.ID {
	s := cc.local.Stream(stream)
	if s == nil {
		return nil // given up before its HEADERS came
	}
	id := s.Owner.(*LocalCall).callerID
	if cc.st.tokens.needsToken(cc) {
		cc.pass = cc.cachedPass(b)
		id = cc.withPass(cc.pass, id)
	}
	return id
}

// identifyForwarded returns the caller that a proxy names, or the peer.
func (cc *callerConn) identifyForwarded(b *h2.Block) *callers.ID {
	if cc.proxied {
		if caller, _, ok := cc.st.heads.Rules.Forwarded(b); ok {
			return cc.st.ids.Of(callers.Caller{Address: caller, Door: cc.callerID.Door}) // a certificate is the proxy's
		}
	}
	return &cc.callerID
}

// headOf returns the head of a header block for one call, which gives it back with
// releaseHead.
func (cc *callerConn) headOf(b *h2.Block, id *callers.ID) *head.Head {
	st := cc.st
	if h := cc.sameHead(b); h != nil && h.Caller == id && h.Pass == cc.pass {
		return st.heads.Again(h)
	}
	h := st.heads.Read(b, &head.From{
		ID: id, Key: cc.keyOf(b, id), Peer: cc.callerID.Address, Proxied: cc.proxied, InProcess: cc.local != nil,
	})
	checked := !st.tokens.needsToken(cc)
	if !checked && cc.pass != nil {
		path, _ := b.Watched(head.FieldPath)
		h.SetPass(cc.pass, string(head.NameOf(path.Value)))
		checked = true
	}
	if b.Same != 0 && checked {
		cc.keepHead(h, b.Same)
	}
	return h
}

// keepHead keeps h for the connection's next call.
func (cc *callerConn) keepHead(h *head.Head, same uint64) {
	cc.dropHead()
	h.Same = same
	cc.head = h.Share()
}

// dropHead forgets the head of the last call.
func (cc *callerConn) dropHead() {
	if cc.head != nil {
		cc.st.releaseHead(cc.head)
		cc.head = nil
	}
}

// releaseHead gives one reference back.
func (st *shardState) releaseHead(h *head.Head) {
	if key := st.heads.Release(h); key != nil {
		st.keys.Drop(key, st.Now())
	}
}

// keyOf returns the key of a request, with one more reference; nil if callers are not told
// apart.
func (cc *callerConn) keyOf(b *h2.Block, from *callers.ID) *callers.Key {
	keys, now := &cc.st.keys, cc.st.Now()
	if field := cc.st.conf.fieldKey; field >= 0 {
		w, _ := b.Watched(field)
		cc.key = keys.OfText(cc.key, w.Value, now)
	} else {
		cc.key = keys.OfCaller(cc.key, from, now)
	}
	return cc.key.Share()
}

// leaveKey gives up the connection's reference to the key of its last call.
func (cc *callerConn) leaveKey() {
	cc.st.keys.Drop(cc.key, cc.st.Now())
	cc.key = nil
}

// keyring has the keys of one shard, and the timer that drops unused ones.
type keyring struct {
	callers.Keyring
	clock shard.Timer
}

// Expired implements shard.Expirer.
func (k *keyring) Expired(_ *shard.Timer, now time.Duration) { k.Expire(now) }

// needsToken reports whether calls of a connection need a token: those of a door in this
// process may be authenticated already.
func (t *tokenCache) needsToken(cc *callerConn) bool { return t.auth != nil && cc.fromNetwork() }

// fromNetwork reports whether the calls of a connection need the checks of outside callers.
func (cc *callerConn) fromNetwork() bool {
	return cc.localCaller == nil || !cc.localCaller.authenticated
}
