package rig

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cabrank/cabrank/lab/internal/scenario"
)

// workerName is what the worker at an index is called, as cabrank calls its own.
func workerName(index int) string { return fmt.Sprintf("worker-%d", index+1) }

// Worker is one process that answers calls.
type Worker struct {
	Command []string // see the package comment for what is replaced in it
	Env     []string // NAME=VALUE, beside the environment of this process; the same is replaced
	Dir     string   // where it runs; empty: where this process does
	Slots   int      // calls that it takes at a time; 0: 1
	CPU     float64  // cores that it may use, before Spec.Scale; 0: all
	Port    int      // 0: chosen
	Cores   string   // those that it runs on, as taskset counts; empty: all
	Later   bool     // started by the event Add, and not before
	Within  bool     // it is in the process of the first one, and no event is about either
}

// Programs are the paths of what an arm may start beside its workers.
type Programs struct {
	Cabrank string // empty: there is none, and no arm can have it in front
	Lab     string // the program that the lab is: its worker, networks, and who ends what is left
	Logs    string // a folder for what processes write, which is there; empty: it is not kept
}

// Spec says what an arm consists of.
type Spec struct {
	Name    string   // of the files in Programs.Logs
	Workers []Worker // at least one that is not Later
	Front   scenario.Front
	Gateway scenario.Gateway // its command is empty: there is none
	// Scale is what all quotas are multiplied with, so that arms fit on the machine; 0:
	// as this arm alone needs it. Arms that are compared should have the same.
	Scale    float64
	Programs Programs
	// Ready bounds how long all of it may take to answer; 0: 30 s.
	Ready time.Duration
}

// readyTime is what Ready is when nothing is said: interpreters on a busy machine.
const readyTime = 30 * time.Second

// complete returns the spec with what was not said.
func (s Spec) complete() Spec {
	s.Workers = slices.Clone(s.Workers)
	for i := range s.Workers {
		s.Workers[i].Slots = max(s.Workers[i].Slots, 1)
	}
	s.Front.Kind, s.Ready = cmp.Or(s.Front.Kind, scenario.FrontNone), cmp.Or(s.Ready, readyTime)
	if s.Scale == 0 {
		s.Scale = Scale(s.Cores())
	}
	return s
}
