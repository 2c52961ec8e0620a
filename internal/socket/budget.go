package socket

import (
	"context"
	"sync/atomic"
)

// budget is the memory that all sockets may take together, in bytes of the process (see
// cost): for incoming messages, requests that are not done, answers and events that are
// not sent yet, and subscriptions.
//
// Concurrency: every method may be called from anywhere.
type budget struct {
	total atomic.Int64
	used  atomic.Int64 // bytes that live; see cost
}

// cost is how much the process grows for n live bytes: the garbage collector lets the heap
// become twice as large (GOGC is 100), and an eighth more stays unused.
func cost(n int64) int64 { return n * 9 / 4 }

// left is how many more bytes may live.
func (b *budget) left() int64 { return b.total.Load()/9*4 - b.used.Load() }

// isOver reports whether more bytes are used than the budget has.
func (b *budget) isOver() bool { return b.left() < 0 }

// sourcePart bounds one source: it takes at most sourcePart times as much as it leaves to
// others.
const sourcePart = 3

// account is the part of the budget that one socket uses. It takes no more than it leaves
// to others, and all sockets of one source no more than three times that: so the largest
// are refused first, and newcomers have room. It is a broker.Share.
//
// Concurrency: every method may be called from anywhere.
type account struct {
	budget *budget
	source *atomic.Int64 // bytes of all sockets of the source; nil without a source
	used   atomic.Int64
	names  atomic.Int64     // bytes of its subscriptions; the first freeNames do not count
	turns  [2]chan struct{} // of the source, and of all
}

// Take takes n bytes. It reports false if they do not fit.
func (a *account) Take(n int) bool {
	a.force(n)
	if a.fits() {
		return true
	}
	a.Give(n)
	return false
}

// has reports whether n more bytes fit.
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

// force takes bytes that cannot be refused.
func (a *account) force(n int) { a.add(int64(n)) }

// Give returns bytes that were taken.
func (a *account) Give(n int) { a.add(-int64(n)) }

func (a *account) add(bytes int64) {
	a.budget.used.Add(bytes)
	a.used.Add(bytes)
	if a.source != nil {
		a.source.Add(bytes)
	}
}

const (
	// memberBytes is the memory of a subscription in its socket, and topicBytes in the hub
	// and the broker if it is the first of its topic; each time its name comes on top.
	memberBytes, topicBytes = 128, 256

	// freeNames is how many bytes of subscriptions a socket has for free: a few channels,
	// as most sockets have, use no budget.
	freeNames = 1 << 10
)

// holdNames adds n bytes of subscriptions, or takes them off if n is negative.
func (a *account) holdNames(n int) {
	now := a.names.Add(int64(n))
	a.add(max(0, now-freeNames) - max(0, now-int64(n)-freeNames))
}

// hasForNames reports whether n more bytes of subscriptions fit.
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
