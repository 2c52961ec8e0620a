package h2

import (
	"math/bits"
	"sync/atomic"
)

const (
	minClass    = 10 // 1 KiB
	maxClass    = 21 // 2 MiB: a full stream window of 1 MiB and room to append
	classes     = maxClass - minClass + 1
	cacheBytes  = 256 << 10 // kept ready for each size, so that memory falls after a peak
	cacheFloor  = 2         // but at least so many buffers
	countedFrom = 12        // buffers of 4 KiB and more count against the Budget
)

// Budget counts the bytes that all pools of a process have handed out, so that
// the process can keep a total bound. Safe for concurrent use.
type Budget struct {
	used  atomic.Int64
	Total int64 // bytes; the bound itself is enforced by whoever asks Used
}

// Used returns the bytes that are in use now.
func (b *Budget) Used() int64 { return b.used.Load() }

// Pressed reports whether more than half of the budget is in use: the time to
// announce smaller windows (R11).
func (b *Budget) Pressed() bool { return b.used.Load() > b.Total/2 }

// Exceeded reports whether more than the budget is in use.
func (b *Budget) Exceeded() bool { return b.used.Load() > b.Total }

// Pool hands out byte buffers by size class (powers of two from 1 KiB to
// 2 MiB) and keeps a bounded number of returned ones.
//
// Concurrency: a pool belongs to one shard and is used under its lock.
type Pool struct {
	budget *Budget
	free   [classes][][]byte
}

// NewPool returns an empty pool that accounts to budget.
func NewPool(budget *Budget) *Pool { return &Pool{budget: budget} }

// Budget returns the budget that the pool accounts to.
func (p *Pool) Budget() *Budget { return p.budget }

// Get returns an empty buffer with room for at least n bytes. Buffers above
// 2 MiB are made for the occasion and not kept.
func (p *Pool) Get(n int) []byte {
	class := classFor(n)
	if class >= classes {
		p.budget.used.Add(int64(n))
		return make([]byte, 0, n)
	}
	if class+minClass >= countedFrom {
		p.budget.used.Add(1 << (class + minClass))
	}
	if list := p.free[class]; len(list) > 0 {
		b := list[len(list)-1]
		list[len(list)-1] = nil
		p.free[class] = list[:len(list)-1]
		return b
	}
	return make([]byte, 0, 1<<(class+minClass))
}

// Put gives back a buffer that Get returned; the caller keeps no reference.
// A nil buffer is ignored.
func (p *Pool) Put(b []byte) {
	if cap(b) == 0 {
		return
	}
	class := classFor(cap(b))
	if class >= classes {
		p.budget.used.Add(-int64(cap(b)))
		return
	}
	size := 1 << (class + minClass)
	if class+minClass >= countedFrom {
		p.budget.used.Add(-int64(size))
	}
	if n := len(p.free[class]); n < cacheFloor || n*size < cacheBytes {
		p.free[class] = append(p.free[class], b[:0])
	}
}

// Append appends data to b, moving it to a larger buffer of the pool where it
// does not fit; b may be nil.
func (p *Pool) Append(b, data []byte) []byte {
	if len(b)+len(data) > cap(b) {
		b = p.Grow(b, len(data))
	}
	return append(b, data...)
}

// Grow returns b with room for at least extra more bytes, in a larger buffer of
// the pool where that is needed; the old one is given back.
func (p *Pool) Grow(b []byte, extra int) []byte {
	if len(b)+extra <= cap(b) {
		return b
	}
	larger := p.Get(max(len(b)+extra, 2*cap(b)))
	larger = append(larger, b...)
	p.Put(b)
	return larger
}

func classFor(n int) int {
	if n <= 1<<minClass {
		return 0
	}
	return bits.Len(uint(n-1)) - minClass
}
