package redis

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pauses between attempts, each twice the one before, and half of it by chance: servers
// that have lost one Redis do not come back to it together.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

type backoff struct{ next time.Duration }

func newBackoff() *backoff { return &backoff{firstPause} }

func (b *backoff) reset() { b.next = firstPause }

// pause waits, or until ctx ends.
func (b *backoff) pause(ctx context.Context) {
	timer := time.NewTimer(b.next/2 + rand.N(b.next/2))
	defer timer.Stop()
	b.next = min(2*b.next, lastPause)
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
