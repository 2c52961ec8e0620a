//go:build !linux

package process

import "time"

// Alive reports whether the group has a process. Its leader is reaped.
func (g Group) Alive() bool { return g.exists() }

// AllStopped is always false: only Linux has /proc/PID/stat.
func AllStopped([]int) bool { return false }

// HasNone is always false, as AllStopped.
func (Group) HasNone([]int) bool { return false }

// CPU is never known: without it a worker with calls in flight is never judged to hang.
func (Group) CPU() (used time.Duration, known bool) { return 0, false }

// Threads is not known.
func (Group) Threads() int { return 0 }

// runs is not known.
func (Group) runs(string) bool { return false }
