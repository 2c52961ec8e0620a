package relay

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/cabrank/cabrank/internal/rank"
)

// newcomers are the methods without a name, for the rank must tell them apart from
// the first call on: what it learns of one goes on when that gets its name. There are
// as many as there are places, 700 bytes each; paths that share one count as the same.
type newcomers struct {
	seed   maphash.Seed
	places [1024]atomic.Pointer[newcomer]
}

// newcomer is what the rank knows of the path that has come first to a place.
type newcomer struct {
	hash   uint64 // of the path
	method *rank.Method
}

func (n *newcomers) place(path []byte) (place *atomic.Pointer[newcomer], hash uint64) {
	hash = maphash.Bytes(n.seed, path)
	return &n.places[hash%uint64(len(n.places))], hash
}

// of returns what the rank knows of a path without a name.
func (n *newcomers) of(path []byte, r *rank.Rank) *rank.Method {
	place, hash := n.place(path)
	for {
		if known := place.Load(); known != nil {
			return known.method
		}
		place.CompareAndSwap(nil, &newcomer{hash, r.Unnamed()})
	}
}

// named takes a path's method out, for it has a name from now on. What was learned of
// another path goes no further.
func (n *newcomers) named(path []byte, name string, r *rank.Rank) *rank.Method {
	place, hash := n.place(path)
	known := place.Load()
	if known == nil || known.hash != hash || !place.CompareAndSwap(known, nil) {
		return r.Method(name)
	}
	r.Name(known.method, name)
	return known.method
}
