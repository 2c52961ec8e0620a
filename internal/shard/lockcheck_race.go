//go:build race

package shard

import (
	"bytes"
	"runtime"
	"sync"
)

// lockCheck asserts in race builds that no goroutine holds the locks of two
// shards of a group (R23).
type lockCheck struct{ holders sync.Map }

func newLockCheck() *lockCheck { return &lockCheck{} }

func (c *lockCheck) before(*Shard) {
	if _, held := c.holders.Load(goroutine()); held {
		panic("internal error: a shard's lock was taken under another's (R23)")
	}
}

func (c *lockCheck) after(s *Shard) { c.holders.Store(goroutine(), s) }

func (c *lockCheck) leave() { c.holders.Delete(goroutine()) }

// goroutine returns the number that the runtime prints for this goroutine.
func goroutine() string {
	var buf [64]byte
	line := buf[:runtime.Stack(buf[:], false)]
	line = bytes.TrimPrefix(line, []byte("goroutine "))
	id, _, _ := bytes.Cut(line, []byte(" "))
	return string(id)
}
