package harness

import (
	"maps"
	"sync"

	"google.golang.org/grpc/status"
)

// Tally counts calls by how they ended. The zero value is ready. Concurrency: any.
type Tally struct {
	mu       sync.Mutex // guards what follows
	answered int
	lost     int
	failed   map[string]int
}

// Count adds a call.
func (t *Tally) Count(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.answered++
		return
	}
	t.lost++
	if t.failed == nil {
		t.failed = map[string]int{}
	}
	t.failed[status.Code(err).String()+": "+status.Convert(err).Message()]++
}

// Sums returns how many calls were answered so far, and how many were not.
func (t *Tally) Sums() (answered, lost int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.answered, t.lost
}

// Failed returns how many calls failed so far, by code and message.
func (t *Tally) Failed() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.failed)
}
