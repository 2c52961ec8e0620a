package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/h2"
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
			return h.callerID
		}
		return cc.identifyForwarded(b)
	case h != nil && cc.st.tokens.valid(h.pass):
		cc.pass = h.pass
		return h.callerID
	}
	cc.pass = cc.cachedPass(b)
	return cc.withPass(cc.pass, cc.identifyForwarded(b))
}

// sameHead returns the head of the last call, if the next one has the very same block.
func (cc *callerConn) sameHead(b *h2.Block) *requestHead {
	if h := cc.head; h != nil && b.Same != 0 && h.same == b.Same {
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
		if caller, _, ok := cc.st.forwarded(b); ok {
			return cc.st.ids.Of(callers.Caller{Address: caller, Door: cc.callerID.Door}) // a certificate is the proxy's
		}
	}
	return &cc.callerID
}

// forwarded returns the caller that a proxy has named in a request, and the list of who
// stands before it.
func (st *shardState) forwarded(b *h2.Block) (caller, before string, ok bool) {
	w, _ := b.Watched(fieldForwardedFor)
	list := string(w.Value)
	if w.Count > 1 { // the engine noted only the last one
		list = ""
		for name, value := range Fields(b.Enc).All() {
			if name == callers.ForwardedFor {
				list += "," + value
			}
		}
		list = list[1:]
	}
	return st.conf.proxies.Caller(list)
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
