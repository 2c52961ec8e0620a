package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/shard"
)

// Bounds of what is kept about callers: by metadata they choose any number of keys.
const (
	// maxKeys is how many keys may be in use at a time on all shards. All callers above
	// that share one key, with one share and one set of limits. ByPeer allows as many
	// keys as connections, if these are more.
	maxKeys = 10_000
	// maxIdleKeys is how many unused keys a shard keeps for their next use.
	maxIdleKeys = 10_000
	// How long an unused key is kept: long enough for its bucket to fill again, so that a
	// caller cannot evade the rate by leaving.
	minKeyIdle = time.Minute
	maxKeyIdle = 10 * time.Minute
)

// key is one caller on one shard.
//
// Life: made for the caller's first call, kept for a while after its last reference.
// Concurrency: guarded by the lock of its shard.
type key struct {
	name    string // never shown: it may be a secret
	account *rank.Account
	lane    uint8 // of its calls, 0: no lane
	refs    int   // references: connections and requestHeads

	idle time.Duration // when its last reference went
	node node[key]     // in keyring.unused, while refs is 0
}

// keyring has the keys of one shard.
type keyring struct {
	st     *shardState
	byName map[string]*key
	others *key // of all callers beyond maxKeys; nil until it is needed

	unused list[key]   // keys without references
	idle   int         // their number
	clock  shard.Timer // when the oldest of them is dropped
}

func (ks *keyring) init(st *shardState) {
	ks.st, ks.byName = st, make(map[string]*key)
	ks.clock.Owner = ks
}

// keyLimit returns how many keys may be in use, and keyIdle how long an unused one is kept.
func (o *Options) keyLimit() int64 {
	if o.Keys.By == ByPeer {
		return max(maxKeys, int64(o.Limits.Connections))
	}
	return maxKeys
}

func (o *Options) keyIdle() time.Duration {
	if o.Keys.Rate <= 0 {
		return minKeyIdle
	}
	refill := time.Duration(min(float64(o.Keys.Burst)/o.Keys.Rate, maxKeyIdle.Seconds()) * float64(time.Second))
	return max(refill, minKeyIdle)
}

// open returns the key with this name, with one more reference. text is the key in the words
// of callers and the configuration.
func (ks *keyring) open(name, text []byte) *key {
	k := ks.byName[string(name)]
	if k != nil && k.refs > 0 {
		k.refs++
		return k
	}
	r := ks.st.relay
	if r.keysInUse.Add(1) > r.settings().keyLimit() {
		r.keysInUse.Add(-1)
		return ks.openOthers()
	}
	if k == nil {
		k = &key{name: string(name), lane: r.settings().naming.lanes[string(text)]}
		k.account = r.rank.Open(k.name, r.settings().naming.terms(text))
		ks.byName[k.name] = k
	} else {
		ks.unlink(k)
	}
	k.refs++
	return k
}

// openOthers returns the key of all callers beyond maxKeys. It is never dropped.
func (ks *keyring) openOthers() *key {
	if ks.others == nil {
		r := ks.st.relay
		ks.others = &key{name: otherKey, account: r.rank.Open(otherKey, r.settings().naming.terms([]byte(otherKey)))}
	}
	ks.others.refs++
	return ks.others
}

// drop gives one reference back.
func (ks *keyring) drop(k *key) {
	if k.refs--; k.refs > 0 || k == ks.others {
		return
	}
	ks.st.relay.keysInUse.Add(-1)
	if ks.idle >= maxIdleKeys {
		ks.forget(ks.unused.first())
	}
	k.idle = ks.st.Now()
	if ks.unused.first() == nil {
		ks.st.SetTimer(&ks.clock, k.idle+ks.st.relay.settings().keyIdle())
	}
	ks.unused.push(&k.node, k)
	ks.idle++
}

// unlink takes a key out of the unused ones.
func (ks *keyring) unlink(k *key) {
	k.node.leave()
	ks.idle--
}

// forget drops an unused key.
func (ks *keyring) forget(k *key) {
	ks.unlink(k)
	delete(ks.byName, k.name)
	ks.st.relay.rank.Close(k.account)
}

// Expired implements shard.Expirer: it drops keys that have been unused for long.
func (ks *keyring) Expired(_ *shard.Timer, now time.Duration) {
	keep := ks.st.relay.settings().keyIdle()
	for k := ks.unused.first(); k != nil; k = ks.unused.first() {
		if k.idle+keep > now {
			ks.st.SetTimer(&ks.clock, k.idle+keep)
			return
		}
		ks.forget(k)
	}
}
