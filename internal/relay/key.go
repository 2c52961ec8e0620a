package relay

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
)

// KeySource says by what callers are told apart.
type KeySource uint8

// The sources of a caller's key.
const (
	// ByNothing makes all callers one.
	ByNothing KeySource = iota
	// ByPeer is the address from which the connection comes, without the port.
	// Callers over unix sockets are one.
	ByPeer
	// ByAuthority is the :authority of the request.
	ByAuthority
	// ByMetadata is the value of a field of the request, the last one if there
	// are several. All calls without it are one caller's.
	ByMetadata
)

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
	// that of all callers beyond maxKeys, and what long keys begin with that
	// stand for a longer one.
	otherKey = "\x00other"
	longKey  = "\x00long"
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

// text returns the key of a connection, where not its requests say it.
func (n *naming) text(cc *callerConn) string {
	switch {
	case n.By == ByNothing: // one for all
		return ""
	case cc.address == "":
		return unixPeer
	default:
		return cc.address
	}
}

// keyOf returns the key of a request, with one more reference; nil if it makes
// no difference. Most connections bring the calls of one caller, so the key of
// the last call is looked at first.
func (cc *callerConn) keyOf(b *h2.Block) *key {
	st := cc.st
	n := &st.relay.settings().naming
	switch field := st.conf.fieldKey; {
	case !n.matter():
		return nil
	case field >= 0:
		w, _ := b.Watched(field)
		cc.setKey(w.Value)
	case cc.key == nil:
		cc.setKey([]byte(n.text(cc)))
	}
	cc.key.refs++
	return cc.key
}

// setKey makes the connection one of the caller with this key.
func (cc *callerConn) setKey(text []byte) {
	st := cc.st
	name := st.relay.settings().naming.name(text, st.digits[:0])
	if cc.key != nil && cc.key.name == string(name) {
		return
	}
	k := st.keys.open(name, text)
	cc.leaveKey()
	cc.key = k
}

// leaveKey gives up the connection's reference to the key of its last call.
func (cc *callerConn) leaveKey() {
	if cc.key != nil {
		cc.st.keys.drop(cc.key)
		cc.key = nil
	}
}
