package redislink

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pauses between attempts, each twice the one before, and half of it by chance: programs
// that have lost one Redis do not come back to it together.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// Backoff is the pauses between attempts to reach Redis.
type Backoff struct{ next time.Duration }

// NewBackoff returns one whose first pause is at most 50 ms.
func NewBackoff() *Backoff { return &Backoff{firstPause} }

// Reset begins again with the first pause.
func (b *Backoff) Reset() { b.next = firstPause }

// Pause waits, or until ctx ends.
func (b *Backoff) Pause(ctx context.Context) {
	timer := time.NewTimer(b.next/2 + rand.N(b.next/2))
	defer timer.Stop()
	b.next = min(2*b.next, lastPause)
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
