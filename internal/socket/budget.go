package socket

import "sync/atomic"

// budget is the memory that all sockets may take together for what they have not
// read or sent yet, in bytes.
//
// Concurrency: every method may be called from anywhere.
type budget struct {
	total atomic.Int64
	used  atomic.Int64
}

func newBudget(total int64) *budget {
	b := new(budget)
	b.total.Store(total)
	return b
}

// take reports whether there was room for so many bytes.
func (b *budget) take(n int) bool {
	if b.used.Add(int64(n)) <= b.total.Load() {
		return true
	}
	b.give(n)
	return false
}

// force takes what cannot be refused.
func (b *budget) force(n int) { b.used.Add(int64(n)) }

// give returns what was taken.
func (b *budget) give(n int) { b.used.Add(-int64(n)) }

// isOver reports whether more was forced than there is.
func (b *budget) isOver() bool { return b.used.Load() > b.total.Load() }
