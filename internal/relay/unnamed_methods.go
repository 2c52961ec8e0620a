package relay

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/cabrank/cabrank/internal/rank"
)

// unnamedMethods are the methods without a name, for the rank must tell them apart from
// the first call on: what it learns of one goes on when that gets its name. There are
// as many as there are places, 700 bytes each; paths that share one count as the same.
type unnamedMethods struct {
	seed    maphash.Seed
	entries [1024]atomic.Pointer[unnamedMethod]
}

// unnamedMethod is what the rank knows of the path that has come first to a place.
type unnamedMethod struct {
	hash   uint64 // of the path
	method *rank.Method
}

func (n *unnamedMethods) entry(path []byte) (place *atomic.Pointer[unnamedMethod], hash uint64) {
	hash = maphash.Bytes(n.seed, path)
	return &n.entries[hash%uint64(len(n.entries))], hash
}

// rankMethod returns what the rank knows of a path without a name.
func (n *unnamedMethods) rankMethod(path []byte, r *rank.Rank) *rank.Method {
	place, hash := n.entry(path)
	for {
		if known := place.Load(); known != nil {
			return known.method
		}
		place.CompareAndSwap(nil, &unnamedMethod{hash, r.Unnamed()})
	}
}

// name takes a path's method out, for it has a name from now on. What was learned of
// another path goes no further.
func (n *unnamedMethods) name(path []byte, name string, r *rank.Rank) *rank.Method {
	place, hash := n.entry(path)
	known := place.Load()
	if known == nil || known.hash != hash || !place.CompareAndSwap(known, nil) {
		return r.Method(name)
	}
	r.Name(known.method, name)
	return known.method
}
