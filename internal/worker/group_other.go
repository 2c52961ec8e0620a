//go:build !linux

package worker

import "golang.org/x/sys/unix"

// groupAlive reports whether the group has a process. Its leader is reaped.
func groupAlive(group int) bool {
	return group > 1 && unix.Kill(-group, 0) == nil
}

// allStopped is always false: only Linux has /proc/PID/stat.
func allStopped([]int) bool { return false }

// listenerGone is always false, as allStopped.
func listenerGone(int, []int) bool { return false }

// ticksPerSecond is not used here, but processGroup needs it.
const ticksPerSecond = 100

// groupTicks is never known: without the CPU time a worker with calls in flight is never
// judged to hang.
func groupTicks(int) (ticks int64, known bool) { return 0, false }

// groupThreads is not known.
func groupThreads(int) int { return 0 }

// groupRuns is not known.
func groupRuns(int, string) bool { return false }
