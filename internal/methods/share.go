package methods

import (
	"context"

	"github.com/cabrank/cabrank/internal/broker"
)

// goroutineBytes is what a call takes beside what it says.
const goroutineBytes = 8 << 10

// errMemory refuses a call.
var errMemory error = &broker.CodeError{Code: 429, Text: "no memory for it: this socket, or where it comes from, has its part"}

// Take implements counter: what is taken counts as the caller's until the call is over.
func (k *call) Take(n int) bool {
	if k.Share != nil && !k.Share.Take(n) {
		return false
	}
	k.held += n
	return true
}

// Give implements counter.
func (k *call) Give(n int) {
	k.held -= n
	if k.Share != nil {
		k.Share.Give(n)
	}
}

// free gives all back.
func (k *call) free() {
	k.dropBody()
	k.Give(k.held)
}

// turn waits for a turn at a long value: a message may take fifty times the memory of its
// JSON.
func (k *call) turn(length int) (done func(), err error) {
	if length < longValue || k.Share == nil {
		return func() {}, nil
	}
	ctx, cancel := context.WithDeadline(k.ctx, k.until)
	defer cancel()
	return k.Share.Turn(ctx)
}
