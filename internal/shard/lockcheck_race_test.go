//go:build race

package shard

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/testkit"
)

// R23: a shard's lock that is taken under another's is noticed in race builds;
// one after the other is fine, and so is posting under a lock.
func TestLocksOfTwoShards(t *testing.T) {
	group := NewGroup(time.Now(), &h2.Budget{Total: 1 << 20})
	a, b := group.New(), group.New()
	defer a.Stop()
	defer b.Stop()
	a.Lock()
	b.Post(task(func(time.Duration) {}))
	a.Unlock()
	b.Lock()
	defer b.Unlock()
	defer func() {
		testkit.Want(t, recover() != nil, "nobody has noticed")
	}()
	a.Lock()
}

// Shards of two groups, as of two relays in one process, do not concern each
// other.
func TestLocksOfTwoGroups(t *testing.T) {
	a := NewGroup(time.Now(), &h2.Budget{Total: 1 << 20}).New()
	b := NewGroup(time.Now(), &h2.Budget{Total: 1 << 20}).New()
	defer a.Stop()
	defer b.Stop()
	a.Lock()
	b.Lock()
	b.Unlock()
	a.Unlock()
}
