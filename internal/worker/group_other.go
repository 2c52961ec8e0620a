//go:build !linux

package worker

import "golang.org/x/sys/unix"

// groupAlive reports whether the group, whose leader is reaped, has a process.
func groupAlive(group int) bool {
	return group > 1 && unix.Kill(-group, 0) == nil
}

// allStopped is always false: only Linux has /proc/PID/stat.
func allStopped([]int) bool { return false }

// deserted is always false, as allStopped.
func deserted(int, []int) bool { return false }

// ticksPerSecond stands for a unit that is not used.
const ticksPerSecond = 100

// groupTicks knows nothing: without the CPU time a worker with calls in flight
// is never said to hang.
func groupTicks(int) (ticks int64, known bool) { return 0, false }

// groupThreads knows nothing.
func groupThreads(int) int { return 0 }

// groupRuns knows nothing.
func groupRuns(int, string) bool { return false }
