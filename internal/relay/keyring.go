package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/shard"
)

// Bounds of what is kept about callers: they choose their own keys, with
// metadata, and could bring any number.
const (
	// maxKeys is how many keys are in use at a time, all shards together; a
	// caller above that is one of the others, who have one share and one set of
	// limits. Connections are bounded already: with ByPeer there are as many
	// keys as they may be.
	maxKeys = 10_000
	// maxIdleKeys is how many more a shard keeps for their next use.
	maxIdleKeys = 10_000
	// How long a key is kept that is not in use: long enough for its bucket to
	// fill again, or going away would be a way around the rate.
	minKeyIdle = time.Minute
	maxKeyIdle = 10 * time.Minute
)

// key is one caller as one shard knows it.
//
// Life: made when its first call or connection comes, kept for a while when
// nothing refers to it any more.
// Concurrency: guarded by the lock of its shard.
type key struct {
	name    string // never told to anybody: it may be a secret
	account *rank.Account
	lane    uint8 // of its calls, 0: none
	refs    int   // connections and forms

	idle  time.Duration // since when there is no reference
	place place[key]    // in keyring.unused, while there is none
}

// keyring is the keys that a shard knows.
type keyring struct {
	st     *stand
	byName map[string]*key
	others *key // all callers beyond maxKeys; nil until there are some

	unused list[key]   // those that nothing refers to
	idle   int         // how many they are
	clock  shard.Timer // when the oldest of them is dropped
}

func (ks *keyring) init(st *stand) {
	ks.st, ks.byName = st, make(map[string]*key)
	ks.clock.Owner = ks
}

// keyLimit is how many keys may be in use, and keyIdle how long one is kept
// that is not.
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

// open returns the key of this name, with one more reference. text is what
// callers and the configuration call it.
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

// openOthers returns the key of all callers for whom there is none. It stays.
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
	ks.unused.push(&k.place, k)
	ks.idle++
}

// unlink takes a key out of those that are not in use.
func (ks *keyring) unlink(k *key) {
	k.place.leave()
	ks.idle--
}

// forget drops a key that is not in use.
func (ks *keyring) forget(k *key) {
	ks.unlink(k)
	delete(ks.byName, k.name)
	ks.st.relay.rank.Close(k.account)
}

// Expired implements shard.Expirer: keys that nobody has come back to go.
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
