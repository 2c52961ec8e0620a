//go:build real || soak

package real_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// A changeKind is something that an operator does.
type changeKind string

// chaosChanges does what operators do, and remembers how often and how long it
// took.
type chaosChanges struct {
	r      *chaosRun
	file   *chaosFile
	random *rand.Rand // used by one goroutine at a time
	ways   map[changeKind]func() error

	mu   sync.Mutex
	done map[changeKind][]time.Duration // guarded by mu
}

func newChaosChanges(r *chaosRun, file *chaosFile, random *rand.Rand) *chaosChanges {
	c := &chaosChanges{r: r, file: file, random: random, done: map[changeKind][]time.Duration{}}
	c.ways = map[changeKind]func() error{}
	return c
}

// do makes one change and returns when it is done.
func (c *chaosChanges) do(kind changeKind) error {
	way, known := c.ways[kind]
	if !known {
		return fmt.Errorf("no change of the kind %q", kind)
	}
	began := time.Now()
	err := way()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[kind] = append(c.done[kind], time.Since(began))
	return err
}

// times returns how long each change took, by kind.
func (c *chaosChanges) times() map[changeKind][]time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.done)
}

// chaosFile is the configuration of the run.
type chaosFile struct {
	path string
}

const chaosConfig = `
workers: {count: %d, slots: %d, transport: unix, min_ready: 2}
drain_timeout: %s
methods:
  /cabrank.example.v1.Work/Cpu: {idempotent: true, retries: 2}
  /cabrank.example.v1.Work/Count: {idempotent: true, retries: 2}
`

func newChaosFile(t *testing.T, dir string) *chaosFile {
	t.Helper()
	f := &chaosFile{path: filepath.Join(dir, "cabrank.yml")}
	if err := os.WriteFile(f.path, fmt.Appendf(nil, chaosConfig, chaosWorkers, chaosSlots, chaosDrain), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}
