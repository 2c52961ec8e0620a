package callers

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"strings"
	"time"

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

// told reports whether callers are told apart or bounded.
func (o *Keys) told() bool { return o.By != ByNothing || o.Rate > 0 || o.Concurrent > 0 }

// Field returns the name of the request field with the key, "": no field.
func (o *Keys) Field() string {
	switch o.By {
	case ByAuthority:
		return ":authority"
	case ByMetadata:
		return o.Metadata
	default:
		return ""
	}
}

// SameSource reports whether both take keys from the same place.
func (o *Keys) SameSource(as *Keys) bool { return o.By == as.By && o.Metadata == as.Metadata }

// SameTerms reports whether both give every key the same terms.
func (o *Keys) SameTerms(as *Keys) bool {
	return o.Rate == as.Rate && o.Burst == as.Burst && o.Concurrent == as.Concurrent && maps.Equal(o.Weights, as.Weights)
}

const (
	// MaxKeyText is the length of the longest key that is kept in full, octets.
	MaxKeyText = 200
	// UnixPeer is the key of callers without an address, as over Unix sockets.
	UnixPeer = "unix"
	// Keys that callers choose have no NUL (RFC 9113 8.2.1). These have one: the key of
	// all callers beyond maxKeys, the prefix of a hash that replaces a long key, and the
	// prefix that tells an identity from an address.
	otherKey    = "\x00other"
	longKey     = "\x00long"
	identityKey = "\x00as"
)

// Naming has the rules for keys that all shards share.
//
// Concurrency: immutable once made.
type Naming struct {
	Keys
	Lanes       map[string]uint8 // by the keys that are in a lane
	Seed        maphash.Seed     // callers cannot choose two long keys with one hash
	Connections int              // as many as callers may have
}

// nameOf returns the key itself, or for a long one its hash, appended to into.
func nameOf(text, into []byte, seed maphash.Seed) []byte {
	if len(text) <= MaxKeyText {
		return text
	}
	return binary.BigEndian.AppendUint64(append(into, longKey...), maphash.Bytes(seed, text))
}

// Terms returns the bounds of the caller by the name of its key.
func (n *Naming) Terms(name string) rank.Terms {
	return n.terms([]byte(strings.TrimPrefix(name, identityKey)))
}

func (n *Naming) terms(text []byte) rank.Terms {
	return rank.Terms{Weight: n.Weights[string(text)], Rate: n.Rate, Burst: n.Burst, Concurrent: n.Concurrent}
}

// mostInUse returns how many keys may be in use.
func (n *Naming) mostInUse() int64 {
	if n.By == ByPeer {
		return max(maxKeys, int64(n.Connections))
	}
	return maxKeys
}

// idleTime returns how long an unused key is kept.
func (n *Naming) idleTime() time.Duration {
	if n.Rate <= 0 {
		return MinKeyIdle
	}
	refill := time.Duration(min(float64(n.Burst)/n.Rate, maxKeyIdle.Seconds()) * float64(time.Second))
	return max(refill, MinKeyIdle)
}
