package h2

import (
	"math/bits"
	"sync/atomic"
)

const (
	minClass    = 10 // 1 KiB
	maxClass    = 21 // 2 MiB: a full stream window of 1 MiB and room to append
	classes     = maxClass - minClass + 1
	keptMost    = 4 << 20 // bytes kept ready for their next use, in all
	countedFrom = 12      // buffers of 4 KiB and more count against the Budget
	smallFree   = 1 << 20 // bytes of smaller ones that do not, of each pool
)

// Budget counts the bytes that all pools of a process have handed out, so that
// the process can keep a total bound. Safe for concurrent use.
type Budget struct {
	used  atomic.Int64
	Total int64 // bytes; callers of Exceeded enforce the bound. See SetTotal
}

// SetTotal changes the bound while the budget is in use.
func (b *Budget) SetTotal(bytes int64) { atomic.StoreInt64(&b.Total, bytes) }

func (b *Budget) total() int64 { return atomic.LoadInt64(&b.Total) }

// Used returns the bytes that are in use now.
func (b *Budget) Used() int64 { return b.used.Load() }

// Add counts bytes that do not come from a pool.
func (b *Budget) Add(bytes int64) { b.used.Add(bytes) }

// Pressed reports whether more than half of the budget is in use: the time to
// announce smaller windows (R11).
func (b *Budget) Pressed() bool { return b.used.Load() > b.total()/2 }

// Exceeded reports whether more than the budget is in use.
func (b *Budget) Exceeded() bool { return b.used.Load() > b.total() }

// Overfull reports whether the budget is exceeded by more than a quarter: then memory is
// used up faster than it can be given up.
func (b *Budget) Overfull() bool { return b.used.Load() > b.total()/4*5 }

// Pool hands out byte buffers by size class (powers of two from 1 KiB to 2 MiB). It keeps
// at most 4 MiB of returned buffers, and only those that were used since the last Trim.
//
// Concurrency: a pool belongs to one shard and is used under its lock.
type Pool struct {
	budget *Budget
	free   [classes]shelf
	kept   int // bytes
	small  int // bytes of buffers below 4 KiB that are in use
}

// shelf holds the free buffers of one size.
type shelf struct {
	list [][]byte
	idle int // buffers that were not needed since the last Trim
}

// NewPool returns an empty pool that accounts to budget.
func NewPool(budget *Budget) *Pool { return &Pool{budget: budget} }

// Budget returns the budget that the pool accounts to.
func (p *Pool) Budget() *Budget { return p.budget }

// Get returns an empty buffer with room for at least n bytes. Buffers above 2 MiB are
// always new, and not kept.
func (p *Pool) Get(n int) []byte {
	class := classFor(n)
	if class >= classes {
		p.budget.used.Add(int64(n))
		return make([]byte, 0, n)
	}
	p.count(class, 1<<(class+minClass))
	if b := p.free[class].take(); b != nil {
		p.kept -= cap(b)
		return b
	}
	return make([]byte, 0, 1<<(class+minClass))
}

// count adds bytes of a class to those in use. Small buffers are taken and given back for
// every call: as long as they are few, the budget, which all shards share, is not touched.
func (p *Pool) count(class, bytes int) {
	if class+minClass < countedFrom {
		before := p.small
		p.small += bytes
		if max(before, p.small) <= smallFree {
			return
		}
		bytes = max(p.small-smallFree, 0) - max(before-smallFree, 0)
	}
	p.budget.used.Add(int64(bytes))
}

func (s *shelf) take() []byte {
	last := len(s.list) - 1
	if last < 0 {
		return nil
	}
	b := s.list[last]
	s.list[last] = nil
	s.list = s.list[:last]
	s.idle = min(s.idle, last)
	return b
}

// Put gives back a buffer that Get returned; the caller keeps no reference.
// A nil buffer is ignored.
func (p *Pool) Put(b []byte) {
	if cap(b) != 0 { // many buffers of a call were never needed
		p.put(b)
	}
}

func (p *Pool) put(b []byte) {
	class := classFor(cap(b))
	if class >= classes {
		p.budget.used.Add(-int64(cap(b)))
		return
	}
	size := 1 << (class + minClass)
	p.count(class, -size)
	if p.kept+size <= keptMost {
		p.kept += size
		p.free[class].list = append(p.free[class].list, b[:0])
	}
}

// Trim drops the buffers that were not needed since the last Trim, so that memory falls
// after a peak.
func (p *Pool) Trim() {
	for class := range p.free {
		s := &p.free[class]
		p.kept -= s.idle << (class + minClass)
		used := copy(s.list, s.list[s.idle:]) // the oldest go
		clear(s.list[used:])
		s.list = s.list[:used]
		if used == 0 {
			s.list = nil
		}
		s.idle = used
	}
}

// Keeps reports whether any buffers are kept, so that Trim has work.
func (p *Pool) Keeps() bool { return p.kept > 0 }

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
