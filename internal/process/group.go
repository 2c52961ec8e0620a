package process

import (
	"golang.org/x/sys/unix"
)

// Group is a process group, named by the process ID of its leader. It gives evidence
// about its processes (health.Process). Errors of kill do not matter: the group is gone,
// or its last members are zombies.
type Group int

// Terminate asks every process of the group to end. CONT lets a stopped one act
// on TERM.
func (g Group) Terminate() {
	if g > 1 {
		_ = unix.Kill(-int(g), unix.SIGTERM)
		_ = unix.Kill(-int(g), unix.SIGCONT)
	}
}

// Kill ends every process of the group.
func (g Group) Kill() {
	// -1 would be every process of the machine, 0 this process's own group.
	if g > 1 {
		_ = unix.Kill(-int(g), unix.SIGKILL)
	}
}

// exists reports whether the group has a process, which may be a zombie.
func (g Group) exists() bool { return g > 1 && unix.Kill(-int(g), 0) == nil }

// HoldsThreads implements health.Process. Ruby's server always does; its pool should have
// more threads than slots, so that one is free while all calls hang.
func (g Group) HoldsThreads() bool { return g.runs("ruby") }
