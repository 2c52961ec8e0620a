package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Alive reports whether the group has a process that is not a zombie.
// It reads /proc, so the leader may be a zombie that is not reaped yet.
func (g Group) Alive() bool {
	for _, pid := range g.Members() {
		if stat, known := readStat(pid); known && !stat.Dead() {
			return true
		}
	}
	return false
}

// AllStopped reports whether all living processes of pids, at least one, are in the
// kernel's state T, as far as they can be seen. Servers with a pool of processes replace
// them.
func AllStopped(pids []int) bool {
	stopped := false
	for _, pid := range pids {
		stat, known := readStat(pid)
		if !known || stat.Dead() {
			continue
		}
		if stat.State != 'T' {
			return false
		}
		stopped = true
	}
	return stopped
}

// HasNone reports whether none of pids is a living process of the group. It is false
// where /proc does not even show the leader, which is not reaped yet, and while the
// leader is ending, which is reported by itself.
func (g Group) HasNone(pids []int) bool {
	if isUnseen(int(g)) || isEnding(int(g)) {
		return false
	}
	for _, pid := range pids {
		if stat, known := readStat(pid); known && !stat.Dead() && Group(stat.Group) == g {
			return false
		}
	}
	return true
}

// isUnseen reports whether a process exists that /proc does not show: one of another
// user with hidepid, or any process where /proc is not mounted.
func isUnseen(pid int) bool {
	_, known := readStat(pid)
	return !known && !errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}

// isEnding reports whether the first thread of a process has ended and is not reaped.
// Its other threads may take a while to end, for example to give back much memory;
// meanwhile /proc no longer shows the sockets that they keep open.
func isEnding(pid int) bool {
	stat, known := readStat(pid)
	return known && stat.Dead()
}

// CPU implements health.Process: the CPU time of the group's living processes; /proc may
// show none of them.
func (g Group) CPU() (used time.Duration, known bool) {
	for _, pid := range g.Members() {
		if stat, seen := readStat(pid); seen {
			used, known = used+stat.CPU, true
		}
	}
	return used, known
}

// Threads implements health.Process: it returns the largest number of threads of a process
// of the group. It counts the threads with the name of their process: libraries in C, like
// gRPC's core, give their own threads names.
func (g Group) Threads() (most int) {
	for _, pid := range g.Members() {
		folder := fmt.Sprintf("/proc/%d/", pid)
		name, err := os.ReadFile(folder + "comm")
		tasks, _ := os.ReadDir(folder + "task")
		same := 0
		for _, task := range tasks {
			if other, _ := os.ReadFile(folder + "task/" + task.Name() + "/comm"); err == nil && bytes.Equal(other, name) {
				same++
			}
		}
		most = max(most, same)
	}
	return most
}

// runs reports whether a process of the group runs a program whose name begins with
// name.
func (g Group) runs(name string) bool {
	return slices.ContainsFunc(g.Members(), func(pid int) bool {
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		return err == nil && strings.HasPrefix(filepath.Base(program), name)
	})
}
