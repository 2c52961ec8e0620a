package relay

import (
	"encoding/binary"
	"hash/maphash"
	"strings"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
)

// KeySource says how callers are told apart.
type KeySource uint8

// The sources of a caller's key.
const (
	// ByNothing takes all callers for one.
	ByNothing KeySource = iota
	// ByPeer is the caller's identity (Caller.Identity), or else its address without the
	// port. All callers without either, such as those over Unix sockets, are one.
	ByPeer
	// ByAuthority is the :authority of the request.
	ByAuthority
	// ByMetadata is the value of a field of the request, the last one of several. All
	// calls without it are one caller's.
	ByMetadata
)

// String returns the word that configurations use.
func (s KeySource) String() string { return [...]string{"none", "peer", "authority", "metadata"}[s] }

// Keys says how callers that share the slots are told apart, and bounds each of them. The
// code that fills it in has validated it.
type Keys struct {
	By       KeySource
	Metadata string             // name of the field, for ByMetadata
	Weights  map[string]float64 // shares of slot time by key; all others have 1

	Rate       float64 // calls that each may begin in a second, 0: any number
	Burst      int     // and at once, at least 1 with a Rate
	Concurrent int     // calls of each that may wait or run at a time, 0: any number
}

// matter reports whether callers are told apart or bounded.
func (o *Keys) matter() bool { return o.By != ByNothing || o.Rate > 0 || o.Concurrent > 0 }

// field returns the name of the request field with the key, "": no field.
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
	// maxKeyText is the length of the longest key that is kept in full, octets.
	maxKeyText = 200
	// unixPeer is the key of callers without an address.
	unixPeer = "unix"
	// Keys that callers choose have no NUL (RFC 9113 8.2.1). These have one: the key of
	// all callers beyond maxKeys, the prefix of a hash that replaces a long key, and the
	// prefix that tells an identity from an address.
	otherKey    = "\x00other"
	longKey     = "\x00long"
	identityKey = "\x00as"
)

// naming has the rules for keys that all shards share.
//
// Concurrency: immutable once made.
type naming struct {
	Keys
	lanes map[string]uint8 // by the keys that are in a lane
	seed  maphash.Seed     // callers cannot choose two long keys with one hash
}

// name returns the key itself, or for a long one its hash, appended to into.
func (n *naming) name(text, into []byte) []byte {
	if len(text) <= maxKeyText {
		return text
	}
	return binary.BigEndian.AppendUint64(append(into, longKey...), maphash.Bytes(n.seed, text))
}

// terms returns the bounds of the caller with this key.
func (n *naming) terms(text []byte) rank.Terms {
	return rank.Terms{Weight: n.Weights[string(text)], Rate: n.Rate, Burst: n.Burst, Concurrent: n.Concurrent}
}

// sameSource reports whether both take keys from the same place.
func sameSource(a, b *Keys) bool { return a.By == b.By && a.Metadata == b.Metadata }

// termsOf returns the bounds of the caller by the name of its key.
func (n *naming) termsOf(name string) rank.Terms {
	return n.terms([]byte(strings.TrimPrefix(name, identityKey)))
}

// keyOf returns the key of a request, with one more reference; nil if callers are not told
// apart. Most connections have the calls of one caller, so it tries the key of the last
// call first.
func (cc *callerConn) keyOf(b *h2.Block, from *callerID) *key {
	n := cc.st.conf.naming
	switch field := cc.st.conf.fieldKey; {
	case !n.matter():
		return nil
	case field >= 0:
		w, _ := b.Watched(field)
		cc.setKey(n.name(w.Value, cc.st.digits[:0]), w.Value)
	case n.By == ByNothing: // one key for all
		cc.setKey(nil, nil)
	default:
		cc.setKey(from.key, from.text)
	}
	cc.key.refs++
	return cc.key
}

// setKey sets the connection's key to the one with this name; text is the key in the words
// of callers and the configuration.
func (cc *callerConn) setKey(name, text []byte) {
	if cc.key != nil && cc.key.name == string(name) {
		return
	}
	k := cc.st.keys.open(name, text)
	cc.leaveKey()
	cc.key = k
}

// rekey drops the connection's key, because callers are told apart in another way now.
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
