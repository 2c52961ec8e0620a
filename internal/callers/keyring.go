package callers

import (
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/list"
	"github.com/cabrank/cabrank/internal/rank"
)

// Bounds of what is kept about callers: by metadata they choose any number of keys.
const (
	// maxKeys is how many keys may be in use at a time on all shards. All callers above
	// that share one key, with one share and one set of limits. ByPeer allows as many
	// keys as connections, if these are more.
	maxKeys = 10_000
	// maxIdleKeys is how many unused keys a shard keeps for their next use.
	maxIdleKeys = 10_000
	// MinKeyIdle and maxKeyIdle bound how long an unused key is kept: long enough for its
	// bucket to fill again, so that a caller cannot evade the rate by leaving.
	MinKeyIdle = time.Minute
	maxKeyIdle = 10 * time.Minute
)

// Key is one caller on one shard.
//
// Life: made for the caller's first call, kept for a while after its last reference.
// Concurrency: guarded by the lock of its shard.
type Key struct {
	Account *rank.Account
	Lane    uint8 // of its calls, 0: no lane

	name string // never shown: it may be a secret
	refs int
	idle time.Duration  // when its last reference went
	node list.Node[Key] // in Keyring.unused, while refs is 0
}

// Share counts one more reference; k may be nil.
func (k *Key) Share() *Key {
	if k != nil {
		k.refs++
	}
	return k
}

// Keyring has the keys of one shard.
//
// Concurrency: guarded by the lock of its shard.
type Keyring struct {
	Naming *Naming // a reload replaces it; keys from another source are for their holders to drop
	rank   *rank.Rank
	inUse  *atomic.Int64          // of all shards, each counted on every one that has it
	alarm  func(at time.Duration) // calls Expire at an instant
	byName map[string]*Key
	others *Key // of all callers beyond maxKeys; nil until it is needed

	unused list.List[Key] // keys without references
	idle   int            // their number
	long   [16]byte       // scratch for the name of a long key
}

// NewKeyring returns a keyring without keys. All shards share inUse.
func NewKeyring(n *Naming, r *rank.Rank, inUse *atomic.Int64, alarm func(at time.Duration)) Keyring {
	return Keyring{Naming: n, rank: r, inUse: inUse, alarm: alarm, byName: make(map[string]*Key)}
}

// OfCaller returns the key of a caller, nil if callers are neither told apart nor bounded. It
// takes the place of one that its holder has, nil: none.
func (ks *Keyring) OfCaller(held *Key, id *ID, now time.Duration) *Key {
	switch {
	case !ks.Naming.told():
		ks.Drop(held, now)
		return nil
	case ks.Naming.By == ByNothing: // one key for all
		return ks.take(held, nil, nil, now)
	default:
		return ks.take(held, id.key, id.text, now)
	}
}

// OfText is OfCaller for a key that the caller has sent.
func (ks *Keyring) OfText(held *Key, text []byte, now time.Duration) *Key {
	return ks.take(held, nameOf(text, ks.long[:0], ks.Naming.Seed), text, now)
}

// take returns the key with this name in place of another one; text is the key in the words
// of callers and the configuration. Most holders have the right one: calls of one connection
// are mostly of one caller.
func (ks *Keyring) take(held *Key, name, text []byte, now time.Duration) *Key {
	if held != nil && held.name == string(name) {
		return held
	}
	k := ks.open(name, text)
	ks.Drop(held, now)
	return k
}

// open returns the key with this name, with one more reference.
func (ks *Keyring) open(name, text []byte) *Key {
	k := ks.byName[string(name)]
	switch {
	case k != nil && k.refs > 0:
		return k.Share()
	case ks.inUse.Add(1) > ks.Naming.mostInUse():
		ks.inUse.Add(-1)
		return ks.openOthers()
	case k != nil:
		ks.unlink(k)
	default:
		k = ks.newKey(string(name), text)
		ks.byName[k.name] = k
	}
	return k.Share()
}

func (ks *Keyring) newKey(name string, text []byte) *Key {
	return &Key{name: name, Lane: ks.Naming.Lanes[string(text)], Account: ks.rank.Open(name, ks.Naming.terms(text))}
}

// openOthers returns the key of all callers beyond maxKeys. It is never dropped.
func (ks *Keyring) openOthers() *Key {
	if ks.others == nil {
		ks.others = ks.newKey(otherKey, []byte(otherKey))
	}
	return ks.others.Share()
}

// Drop gives one reference back; k may be nil.
func (ks *Keyring) Drop(k *Key, now time.Duration) {
	if k == nil {
		return
	}
	if k.refs--; k.refs > 0 || k == ks.others {
		return
	}
	ks.inUse.Add(-1)
	if ks.idle >= maxIdleKeys {
		ks.forget(ks.unused.First())
	}
	k.idle = now
	if ks.unused.First() == nil {
		ks.alarm(now + ks.Naming.idleTime())
	}
	ks.unused.Push(&k.node, k)
	ks.idle++
}

// unlink takes a key out of the unused ones.
func (ks *Keyring) unlink(k *Key) {
	k.node.Leave()
	ks.idle--
}

// forget drops an unused key.
func (ks *Keyring) forget(k *Key) {
	ks.unlink(k)
	delete(ks.byName, k.name)
	ks.rank.Close(k.Account)
}

// Expire drops keys that have been unused for long.
func (ks *Keyring) Expire(now time.Duration) {
	keep := ks.Naming.idleTime()
	for k := ks.unused.First(); k != nil; k = ks.unused.First() {
		if k.idle+keep > now {
			ks.alarm(k.idle + keep)
			return
		}
		ks.forget(k)
	}
}
