package relay

import (
	"encoding/binary"
	"hash/maphash"
	"strings"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
)

// KeySource says by what callers are told apart.
type KeySource uint8

// The sources of a caller's key.
const (
	// ByNothing makes all callers one.
	ByNothing KeySource = iota
	// ByPeer is who the caller has shown to be (Caller.Identity), or else the
	// address from which the connection comes, without the port. All without either,
	// as those over unix sockets are, are one.
	ByPeer
	// ByAuthority is the :authority of the request.
	ByAuthority
	// ByMetadata is the value of a field of the request, the last one if there
	// are several. All calls without it are one caller's.
	ByMetadata
)

// String returns the word that configurations have for it.
func (s KeySource) String() string { return [...]string{"none", "peer", "authority", "metadata"}[s] }

// Keys says how callers are told apart that share the slots, and what each may
// do. Whoever fills it in has validated it.
type Keys struct {
	By       KeySource
	Metadata string             // name of the field, for ByMetadata
	Weights  map[string]float64 // shares of slot time by key; those not named have 1

	Rate       float64 // calls that each may begin in a second, 0: any
	Burst      int     // and at once, at least 1 where there is a Rate
	Concurrent int     // calls of each that may wait or run at a time, 0: any
}

// matter reports whether it makes a difference whose call it is.
func (o *Keys) matter() bool { return o.By != ByNothing || o.Rate > 0 || o.Concurrent > 0 }

// field returns the name of the field that has the key, "" if none has.
func (o *Keys) field() string {
	switch o.By {
	case ByAuthority:
		return ":authority"
	case ByMetadata:
		return o.Metadata
	default:
		return ""
	}
}

const (
	// maxKeyText is the length of the longest key that is kept as it is, octets.
	maxKeyText = 200
	// unixPeer is the key of callers without an address.
	unixPeer = "unix"
	// A key that callers have chosen has no NUL (RFC 9113 8.2.1). These have:
	// that of all callers beyond maxKeys, what long keys begin with that stand
	// for a longer one, and what tells an identity from an address.
	otherKey    = "\x00other"
	longKey     = "\x00long"
	identityKey = "\x00as"
)

// naming is what all shards must agree on about keys.
//
// Concurrency: immutable once made.
type naming struct {
	Keys
	lanes map[string]uint8 // of keys that are in one
	seed  maphash.Seed     // nobody outside can choose two long keys that are taken for one
}

// name returns what a key is known by here: itself or, if it is long, something
// short in its place that is appended to into.
func (n *naming) name(text, into []byte) []byte {
	if len(text) <= maxKeyText {
		return text
	}
	return binary.BigEndian.AppendUint64(append(into, longKey...), maphash.Bytes(n.seed, text))
}

// terms are what the caller with this key may have.
func (n *naming) terms(text []byte) rank.Terms {
	return rank.Terms{Weight: n.Weights[string(text)], Rate: n.Rate, Burst: n.Burst, Concurrent: n.Concurrent}
}

// sameSource reports whether keys come from the same place by both.
func sameSource(a, b *Keys) bool { return a.By == b.By && a.Metadata == b.Metadata }

// termsOf are what the caller may have whose key has this name.
func (n *naming) termsOf(name string) rank.Terms {
	return n.terms([]byte(strings.TrimPrefix(name, identityKey)))
}

// keyOf returns the key of a request, with one more reference; nil if it makes
// no difference. Most connections bring the calls of one caller, so the key of
// the last call is looked at first.
func (cc *callerConn) keyOf(b *h2.Block, from *who) *key {
	n := cc.st.conf.naming
	switch field := cc.st.conf.fieldKey; {
	case !n.matter():
		return nil
	case field >= 0:
		w, _ := b.Watched(field)
		cc.setKey(n.name(w.Value, cc.st.digits[:0]), w.Value)
	case n.By == ByNothing: // one for all
		cc.setKey(nil, nil)
	default:
		cc.setKey(from.key, from.text)
	}
	cc.key.refs++
	return cc.key
}

// setKey makes the connection one of the caller whose key has this name; text is
// what callers and the configuration call it.
func (cc *callerConn) setKey(name, text []byte) {
	if cc.key != nil && cc.key.name == string(name) {
		return
	}
	k := cc.st.keys.open(name, text)
	cc.leaveKey()
	cc.key = k
}

// rekey has the connection's next call say anew whose it is: callers are told apart
// by something else.
func (cc *callerConn) rekey() {
	cc.leaveKey()
	cc.link.Conn.Watch(cc.st.conf.down.Watch)
}

// leaveKey gives up the connection's reference to the key of its last call.
func (cc *callerConn) leaveKey() {
	if cc.key != nil {
		cc.st.keys.drop(cc.key)
		cc.key = nil
	}
}
