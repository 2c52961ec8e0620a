package service

import (
	"io/fs"
	"sync"
	"time"

	"github.com/cabrank/cabrank/internal/cgroup"
)

// footprintEvery is how long what was read of the workers' memory is shown: for a
// worker of several processes the kernel has to walk through all their pages.
const footprintEvery = 5 * time.Second

// footprints are the memory of workers, for those who look.
//
// Concurrency: of may be called from anywhere.
type footprints struct {
	root fs.FS // what has the proc file system

	mu    sync.Mutex
	at    time.Time     // when it was read
	bytes map[int]int64 // by process group
}

// of returns the resident memory of process groups in bytes, as it is or was a
// moment ago. Those of which it is not known are left out.
func (f *footprints) of(groups []int, now time.Time) map[int]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.at) < footprintEvery && f.has(groups) {
		return f.bytes
	}
	f.at, f.bytes = now, make(map[int]int64)
	for group, processes := range cgroup.ReadProcesses(f.root, groups) {
		if bytes, known := processes.Memory(f.root); known {
			f.bytes[group] = bytes
		}
	}
	return f.bytes
}

// has reports whether the last reading knew these groups. A new worker is worth
// another one.
func (f *footprints) has(groups []int) bool {
	for _, group := range groups {
		if _, known := f.bytes[group]; !known {
			return false
		}
	}
	return true
}
