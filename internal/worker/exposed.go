package worker

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/process"
)

// sharedEvery is how often warnIfShared looks while a worker is not ready yet: once for
// all workers, so that many cost little more than one.
const sharedEvery = 500 * time.Millisecond

// warnIfExposed warns once that a worker listens on more than the loopback address that
// it was given. The worker serves all the same: in a container that may be intended, and
// many servers cannot do otherwise.
func (w *worker) warnIfExposed(l *child) {
	given, err := netip.ParseAddrPort(l.endpoint.address)
	if l.endpoint.network != "tcp" || err != nil {
		return
	}
	for _, on := range l.group.ListensOn() {
		own, err := netip.ParseAddrPort(on)
		if err != nil || own.Port() != given.Port() || own.Addr().Unmap().IsLoopback() {
			continue
		}
		w.s.exposedOnce.Do(func() {
			w.log.Warn("worker listens beyond this machine: others can reach it past cabrank's queue and limits; have it listen on its address alone",
				"listens_on", on, "address", l.endpoint.address)
		})
	}
}

// warnIfShared warns once that workers listen on the same port. The kernel allows that
// to processes of one user with SO_REUSEPORT, which servers of gRPC's C core set. Such
// workers do not listen where they were told, and none gets ready, except one whose port
// that is by chance. Processes are looked into only after one has started, or after other
// sockets have begun to share an address on this host.
func (s *Supervisor) warnIfShared(now time.Time) {
	age, last := int64(now.Sub(s.began)), s.sharedLook.Load()
	if age-last < int64(sharedEvery) || !s.sharedLook.CompareAndSwap(last, age) {
		return
	}
	var groups []process.Group
	names := make(map[process.Group]string)
	for _, w := range s.allWorkers() {
		if status := w.board.read(); status.PID != 0 {
			group := process.Group(status.PID)
			groups, names[group] = append(groups, group), status.Name
		}
	}
	address, sharers, mark := process.SharedAddress(groups, s.sharedMark.Load())
	s.sharedMark.Store(mark)
	if len(sharers) == 0 {
		return
	}
	s.sharedLook.Store(math.MaxInt64) // once
	told := make([]string, len(sharers))
	for i, group := range sharers {
		told[i] = names[group]
	}
	slices.Sort(told)
	s.options.Logger.Warn("workers share a port and will not get ready: have each listen on its own address, by {addr} in its arguments (gruf --host {addr}) or by CABRANK_ADDR or PORT in its environment",
		"listen_on", address, "workers", strings.Join(told, ", "))
}
