package worker

import (
	"errors"
	"fmt"
	"time"
)

const (
	// recycleSpread is how far below the limits that Options names a process may
	// draw its own, so that workers started together do not come due together.
	recycleSpread = 0.1
	// steadyMemory is the least age at which a process is recycled for its
	// memory. One that needs more than the limit from the start would otherwise
	// be replaced for ever, for nothing.
	steadyMemory = 60 * time.Second
	// steadyBoots is the same in boot times: who takes a minute to start is not
	// replaced every minute.
	steadyBoots = 10
)

// Recycle says when a worker that is well is replaced by a fresh one: against
// leaks and fragmented heaps. The zero value recycles nobody.
//
// Each process draws its own limits of calls and age, up to 10 % below these.
// One worker at a time is replaced, as in a rolling restart, and none while a
// rolling restart runs. Memory is known on Linux only.
type Recycle struct {
	// Calls is how many calls a process serves. 0 means no limit.
	Calls int
	// Age is how long a process serves, counted from its readiness. 0 means no
	// limit.
	Age time.Duration
	// Memory is how many bytes the processes of a worker's group may hold
	// resident together; pages that they share count for each. 0 means no limit.
	Memory int64
	// Cgroup is the share, 0 to 1, of the control group's memory limit beyond
	// which the largest worker is replaced. 0 means no limit; without a limit of
	// the control group it does nothing.
	Cgroup float64
}

func (r Recycle) check() error {
	switch {
	case r.Calls < 0:
		return fmt.Errorf("calls until a worker is recycled are %d: they cannot be negative", r.Calls)
	case r.Age < 0:
		return fmt.Errorf("age at which a worker is recycled is %v: it cannot be negative", r.Age)
	case r.Memory < 0:
		return fmt.Errorf("memory at which a worker is recycled is %d bytes: it cannot be negative", r.Memory)
	case !(r.Cgroup >= 0 && r.Cgroup <= 1):
		return errors.New("share of the control group's memory at which a worker is recycled must be within 0 and 1")
	}
	return nil
}

// weighs reports whether memory has to be known.
func (r Recycle) weighs() bool { return r.Memory > 0 || r.Cgroup > 0 }

// limits are the limits of one process.
type limits struct {
	calls  uint64        // 0: none
	age    time.Duration // 0: none
	memory int64         // 0: none
	steady time.Duration // younger ones are not replaced for their memory
}

// draw returns the limits of a process that took boot until it was ready, for a
// chance from 0 to 1. Memory is not spread: processes differ in it by themselves.
func (r Recycle) draw(boot time.Duration, chance float64) limits {
	part := 1 - recycleSpread*chance
	drawn := limits{
		age: time.Duration(float64(r.Age) * part), memory: r.Memory,
		steady: max(steadyMemory, steadyBoots*boot),
	}
	if r.Calls > 0 {
		drawn.calls = max(1, uint64(float64(r.Calls)*part))
	}
	return drawn
}

// wear is how used up one process is.
type wear struct {
	calls  uint64        // served by it
	age    time.Duration // since its first readiness
	memory int64         // resident bytes of its group; 0 if nobody knows
}

// due decides whether a process is to be replaced for what it is itself.
func (l limits) due(w wear) (Reason, bool) {
	switch {
	case l.calls > 0 && w.calls >= l.calls:
		return ReasonCalls, true
	case l.age > 0 && w.age >= l.age:
		return ReasonAge, true
	case l.heavy(w) && w.age >= l.steady:
		return ReasonMemory, true
	}
	return 0, false
}

// heavy reports a process over its limit of memory, of whatever age.
func (l limits) heavy(w wear) bool { return l.memory > 0 && w.memory >= l.memory }

// crowded reports whether a control group that uses so many bytes of a limit is
// too full. A limit of 0 is none.
func (r Recycle) crowded(used, limit int64) bool {
	return r.Cgroup > 0 && limit > 0 && float64(used) >= r.Cgroup*float64(limit)
}

// candidate is one worker in the choice of whom a full control group loses.
type candidate struct {
	limits limits
	wear   wear
}

// largest returns the index of the worker with the most memory, or -1 if none
// is known to have any. It is the one whose end helps most; if that one is too
// young to be replaced for its memory nobody is: a smaller one would not help.
func largest(of []candidate) int {
	found := -1
	for i, c := range of {
		if c.wear.memory > 0 && (found < 0 || c.wear.memory > of[found].wear.memory) {
			found = i
		}
	}
	if found >= 0 && of[found].wear.age < of[found].limits.steady {
		return -1
	}
	return found
}
