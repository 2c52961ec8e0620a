package callee

import (
	"context"
	"sync"
)

// places is the workers: how many more calls may be taken.
//
// Concurrency: anything may be called from anywhere.
type places struct {
	more chan struct{} // holds one if there may be a place

	mu   sync.Mutex
	free int
}

func newPlaces(n int) *places { return &places{more: make(chan struct{}, 1), free: n} }

// await waits for a free place and returns how many there are; 0 if ctx ends.
func (p *places) await(ctx context.Context) int {
	for ctx.Err() == nil {
		p.mu.Lock()
		n := p.free
		p.mu.Unlock()
		if n > 0 {
			p.tell() // whoever else waits
			return n
		}
		select {
		case <-p.more:
		case <-ctx.Done():
		}
	}
	return 0
}

// take returns how many of n places are the caller's from now on.
func (p *places) take(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = min(n, p.free)
	p.free -= n
	return n
}

func (p *places) release() {
	p.mu.Lock()
	p.free++
	p.mu.Unlock()
	p.tell()
}

func (p *places) tell() {
	select {
	case p.more <- struct{}{}:
	default: // it was told already
	}
}
