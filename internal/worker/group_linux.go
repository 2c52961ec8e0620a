package worker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// groupAlive reports whether the group has a process that is not a zombie.
// It reads /proc, so the leader may be a zombie that is not reaped yet.
func groupAlive(group int) bool {
	for _, pid := range groupMembers(group) {
		if stat, err := readStat(pid); err == nil && !stat.dead() {
			return true
		}
	}
	return false
}

// allStopped reports whether all living processes of pids, at least one, are in the
// kernel's state T, as far as they can be seen. Servers with a pool of processes replace
// them.
func allStopped(pids []int) bool {
	stopped := false
	for _, pid := range pids {
		stat, err := readStat(pid)
		if err != nil || stat.dead() {
			continue
		}
		if stat.state != 'T' {
			return false
		}
		stopped = true
	}
	return stopped
}

// listenerGone reports whether none of pids is a living process of the group. It is false
// where /proc does not even show the leader, which is not reaped yet, and while the
// leader is ending, which is reported by itself.
func listenerGone(group int, pids []int) bool {
	if isUnseen(group) || isEnding(group) {
		return false
	}
	for _, pid := range pids {
		if stat, err := readStat(pid); err == nil && !stat.dead() && stat.group == group {
			return false
		}
	}
	return true
}

// isUnseen reports whether a process exists that /proc does not show: one of another
// user with hidepid, or any process where /proc is not mounted.
func isUnseen(pid int) bool {
	_, err := readStat(pid)
	return err != nil && !errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}

// isEnding reports whether the first thread of a process has ended and is not reaped.
// Its other threads may take a while to end, for example to give back much memory;
// meanwhile /proc no longer shows the sockets that they keep open.
func isEnding(pid int) bool {
	stat, err := readStat(pid)
	return err == nil && stat.dead()
}

// groupTicks returns the CPU time of the group's living processes, in clock ticks, and
// whether it is known: /proc may show none of them.
func groupTicks(group int) (ticks int64, known bool) {
	for _, pid := range groupMembers(group) {
		if stat, err := readStat(pid); err == nil {
			ticks, known = ticks+stat.ticks, true
		}
	}
	return ticks, known
}

// groupThreads returns the largest number of threads of a process of the group. It counts
// the threads with the name of their process: libraries in C, like gRPC's core, give
// their own threads names.
func groupThreads(group int) (most int) {
	for _, pid := range groupMembers(group) {
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

// groupRuns reports whether a process of the group runs a program whose name begins with
// name.
func groupRuns(group int, name string) bool {
	return slices.ContainsFunc(groupMembers(group), func(pid int) bool {
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		return err == nil && strings.HasPrefix(filepath.Base(program), name)
	})
}
