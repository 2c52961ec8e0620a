package relay

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/cabrank/cabrank/internal/rank"
)

// unnamedMethods has the rank's record of methods that have no name yet: the rank tells
// them apart from the first call on, and keeps the record when a method gets its name. Each
// entry takes 700 bytes; paths that share an entry count as one method.
type unnamedMethods struct {
	seed    maphash.Seed
	entries [1024]atomic.Pointer[unnamedMethod]
}

// unnamedMethod is the rank's record of the first path of an entry.
type unnamedMethod struct {
	hash   uint64 // of the path
	method *rank.Method
}

func (n *unnamedMethods) entry(path []byte) (place *atomic.Pointer[unnamedMethod], hash uint64) {
	hash = maphash.Bytes(n.seed, path)
	return &n.entries[hash%uint64(len(n.entries))], hash
}

// rankMethod returns the rank's record of a path without a name.
func (n *unnamedMethods) rankMethod(path []byte, r *rank.Rank) *rank.Method {
	place, hash := n.entry(path)
	for {
		if known := place.Load(); known != nil {
			return known.method
		}
		place.CompareAndSwap(nil, &unnamedMethod{hash, r.Unnamed()})
	}
}

// name removes a path and returns its record under the new name, or a new record if another
// path has the entry.
func (n *unnamedMethods) name(path []byte, name string, r *rank.Rank) *rank.Method {
	place, hash := n.entry(path)
	known := place.Load()
	if known == nil || known.hash != hash || !place.CompareAndSwap(known, nil) {
		return r.Method(name)
	}
	r.Name(known.method, name)
	return known.method
}
