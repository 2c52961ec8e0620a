package socket

import (
	"context"
	"sync/atomic"
)

// budget is the memory that all sockets may take together, in bytes of the process (see
// cost): for what comes in, for requests that are not done, answers, what was not sent yet,
// and subscriptions.
//
// Concurrency: every method may be called from anywhere.
type budget struct {
	total atomic.Int64
	used  atomic.Int64 // bytes that live; see cost
}

// cost is by how much the process grows when so many bytes live: the garbage collector
// lets the heap become twice of that (GOGC is 100), and an eighth more stays unused.
func cost(n int64) int64 { return n * 9 / 4 }

// left is how many more bytes may live.
func (b *budget) left() int64 { return b.total.Load()/9*4 - b.used.Load() }

// isOver reports whether more was forced than there is.
func (b *budget) isOver() bool { return b.left() < 0 }

// sourcePart is how many times as much as it leaves to others one source takes.
const sourcePart = 3

// account is what of the budget one socket has. It takes no more than it leaves to others,
// and all sockets of one source no more than three times that: who holds most is refused
// first, and there is room for whoever comes. It is a broker.Share.
//
// Concurrency: every method may be called from anywhere.
type account struct {
	budget *budget
	source *atomic.Int64 // what all sockets of the source have; nil: it is of no source
	used   atomic.Int64
	names  atomic.Int64     // what its subscriptions take, freeNames of which count nowhere
	turns  [2]chan struct{} // of the source, and of all
}

// Take reports whether there was room for so many bytes.
func (a *account) Take(n int) bool {
	a.force(n)
	if a.fits() {
		return true
	}
	a.Give(n)
	return false
}

// has reports whether there is room for so many bytes.
func (a *account) has(n int) bool {
	if !a.Take(n) {
		return false
	}
	a.Give(n)
	return true
}

// fits reports whether the account has no more than it may.
func (a *account) fits() bool {
	left := a.budget.left()
	return left >= 0 && a.used.Load() <= left && (a.source == nil || a.source.Load() <= sourcePart*left)
}

// force takes what cannot be refused.
func (a *account) force(n int) { a.add(int64(n)) }

// Give returns what was taken.
func (a *account) Give(n int) { a.add(-int64(n)) }

func (a *account) add(bytes int64) {
	a.budget.used.Add(bytes)
	a.used.Add(bytes)
	if a.source != nil {
		a.source.Add(bytes)
	}
}

const (
	// memberBytes and topicBytes are what a subscription takes of its socket, and of the
	// hub and the broker if it is the first of its topic: its name beside them, in either.
	memberBytes, topicBytes = 128, 256

	// freeNames of its subscriptions are part of what each socket takes: a few channels of
	// its own, as most have, use no budget.
	freeNames = 1 << 10
)

// holdNames counts what subscriptions take, or with a negative n what they have taken.
func (a *account) holdNames(n int) {
	now := a.names.Add(int64(n))
	a.add(max(0, now-freeNames) - max(0, now-int64(n)-freeNames))
}

// hasForNames reports whether there is room for n bytes more of subscriptions.
func (a *account) hasForNames(n int) bool {
	over := a.names.Load() + int64(n) - freeNames
	return over <= 0 || a.has(int(min(over, int64(n))))
}

// Turn implements broker.Share.
func (a *account) Turn(ctx context.Context) (done func(), err error) {
	for i, turn := range a.turns {
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
			if i > 0 {
				<-a.turns[0]
			}
			return nil, ctx.Err()
		}
	}
	return func() {
		<-a.turns[1]
		<-a.turns[0]
	}, nil
}
