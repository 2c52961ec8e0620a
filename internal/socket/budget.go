package socket

import "sync/atomic"

// budget is the memory that all sockets may take together for what they have not
// read or sent yet, in bytes of the process: see cost.
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

// cost is by how much the process grows when so many bytes live: the garbage collector
// lets the heap become twice of that (GOGC is 100), and an eighth more stays unused. What
// is taken in parts is given back in parts, or is a multiple of 4.
func cost(n int) int64 { return int64(n) * 9 / 4 }

// take reports whether there was room for so many bytes.
func (b *budget) take(n int) bool {
	if b.used.Add(cost(n)) <= b.total.Load() {
		return true
	}
	b.give(n)
	return false
}

// force takes what cannot be refused.
func (b *budget) force(n int) { b.used.Add(cost(n)) }

// give returns what was taken.
func (b *budget) give(n int) { b.used.Add(-cost(n)) }

// isOver reports whether more was forced than there is.
func (b *budget) isOver() bool { return b.used.Load() > b.total.Load() }
