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
	places [1024]atomic.Pointer[rank.Method]
}

func (n *newcomers) place(path []byte) *atomic.Pointer[rank.Method] {
	return &n.places[maphash.Bytes(n.seed, path)%uint64(len(n.places))]
}

// of returns what the rank knows of a path without a name.
func (n *newcomers) of(path []byte, r *rank.Rank) *rank.Method {
	place := n.place(path)
	for {
		if m := place.Load(); m != nil {
			return m
		}
		place.CompareAndSwap(nil, r.Unnamed())
	}
}

// named takes a path's method out, for it has a name from now on.
func (n *newcomers) named(path []byte, name string, r *rank.Rank) *rank.Method {
	m := n.place(path).Swap(nil)
	if m == nil {
		return r.Method(name)
	}
	r.Name(m, name)
	return m
}
