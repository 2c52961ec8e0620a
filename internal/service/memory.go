package service

import (
	"cmp"
	"io/fs"
	"log/slog"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"github.com/cabrank/cabrank/internal/cgroup"
)

const (
	// memoryLook is how often the memory of the container is looked at.
	memoryLook = time.Second
	// memoryApart is which part of the container is nobody's: what comes between two
	// looks, and what the kernel counts late.
	memoryApart = 20
	// ownMemory is what this process takes without callers: the runtime, metrics,
	// buffers of shards.
	ownMemory = 16 << 20
	// leastOwn is the least limit that the collector is given, however little there
	// is: below it would do nothing but collect.
	leastOwn = ownMemory + 8<<20
	// liveShare is how much of the memory beyond that callers may take: three parts of
	// live memory to each of garbage, so that the collector need not run all the time.
	liveNumerator, liveDenominator = 2, 3
	// Sockets have at most three quarters of the connections, so that calls over HTTP/2
	// find room however many pages are open.
	socketsNumerator, socketsDenominator = 3, 4
	// socketMemory is which part of the memory for callers sockets have at most.
	socketMemory = 4
	// socketBytes is by how much the process may grow for all that waits for sockets, where
	// socket serve says nothing else.
	socketBytes = 64 << 20
	// pagesMemory is which part of that memory the metrics pages of workers have at most.
	pagesMemory = 4
)

// container has this process keep within the memory of its control group: what is
// left there beside the workers bounds the collector (as GOMEMLIMIT does) and what
// callers may take. Without a limit nothing is done.
//
// Concurrency: one look at a time.
type container struct {
	root   fs.FS
	groups *cgroup.Self
	log    *slog.Logger
	given  int64 // GOMEMLIMIT of the environment, math.MaxInt64: none

	limitOwn  func(bytes int64)
	limitUse  func(bytes int64)
	others    int64 // used by others at the last look
	own       int64 // the limit in force, 0: none
	toldLimit int64
}

func newContainer(root fs.FS, log *slog.Logger, limitUse func(int64)) *container {
	return &container{
		root: root, groups: cgroup.Find(root), log: log,
		given:    debug.SetMemoryLimit(-1),
		limitOwn: func(bytes int64) { debug.SetMemoryLimit(bytes) },
		limitUse: limitUse,
	}
}

// look reads what others use and sets the limits by what that leaves.
func (c *container) look() {
	group, limited := c.groups.Memory()
	if !limited {
		return
	}
	own, known := cgroup.OwnMemory(c.root)
	if !known {
		return
	}
	others := max(group.Used-own, 0)
	left := group.Limit - group.Limit/memoryApart - max(others, c.others)
	c.others = others
	c.set(min(max(left, leastOwn), c.given), group)
}

func (c *container) set(own int64, group cgroup.Memory) {
	if own == c.own {
		return
	}
	c.own = own
	if c.given == math.MaxInt64 {
		c.limitOwn(own)
	}
	use := (own - ownMemory) / liveDenominator * liveNumerator
	c.limitUse(use)
	c.tell(own, use, group)
}

// tell says once what the limit of the container makes of the others, and again if
// that changes.
func (c *container) tell(own, use int64, group cgroup.Memory) {
	if group.Limit == c.toldLimit {
		return
	}
	c.toldLimit = group.Limit
	c.log.Info("keeping within the memory of the container", "limit", group.Limit, "own", own, "callers", use)
}

// boundSockets bounds how many sockets there may be by how many connections may be.
func (s *service) boundSockets() {
	if s.sockets != nil {
		s.sockets.SetMost(int(s.relay.Stats().MostConnections * socketsNumerator / socketsDenominator))
	}
}

// setMemory tells how many bytes callers may take, of all kinds, and workers' metrics
// pages.
func (s *service) setMemory(bytes int64) {
	if s.scrape != nil {
		bytes -= s.scrape.store.SetMemory(bytes / pagesMemory)
	}
	if s.sockets != nil {
		waiting := min(cmp.Or(s.cfg.Socket.Serve.BufferTotal, socketBytes), bytes/socketMemory)
		s.sockets.SetBuffer(waiting)
		bytes -= waiting
	}
	s.relay.SetMemory(bytes)
	s.boundSockets()
}

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
