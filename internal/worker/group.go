package worker

import (
	"time"

	"golang.org/x/sys/unix"
)

// A group is named by the process ID of its leader. Errors of kill do not matter
// here: the group is gone, or its last members are zombies.

// terminate asks every process of the group to end. CONT lets a stopped one act
// on TERM.
func terminate(group int) {
	if group > 1 {
		_ = unix.Kill(-group, unix.SIGTERM)
		_ = unix.Kill(-group, unix.SIGCONT)
	}
}

// kill ends every process of the group.
func kill(group int) {
	// -1 would be every process of the machine, 0 this process's own group.
	if group > 1 {
		_ = unix.Kill(-group, unix.SIGKILL)
	}
}

// processGroup gives evidence about a worker's processes (health.Process).
type processGroup int

// CPU implements health.Process.
func (g processGroup) CPU() (used time.Duration, known bool) {
	ticks, known := groupTicks(int(g))
	return time.Duration(ticks) * time.Second / ticksPerSecond, known
}

// Threads implements health.Process.
func (g processGroup) Threads() int { return groupThreads(int(g)) }

// HoldsThreads implements health.Process. Ruby's server always does; its pool should have
// more threads than slots (ThreadsFor), so that one is free while all calls hang.
func (g processGroup) HoldsThreads() bool { return groupRuns(int(g), "ruby") }
