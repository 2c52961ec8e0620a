//go:build !linux

package worker

import "golang.org/x/sys/unix"

// groupAlive reports whether the group, whose leader is reaped, has a process.
func groupAlive(group int) bool {
	return group > 1 && unix.Kill(-group, 0) == nil
}

// allStopped is always false: only Linux has /proc/PID/stat.
func allStopped([]int) bool { return false }
