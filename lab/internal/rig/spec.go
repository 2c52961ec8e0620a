package rig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cabrank/cabrank/lab/internal/proxies"
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

// complete returns the spec with what was not said, or what is wrong with it.
func (s Spec) complete() (Spec, error) {
	s.Workers = slices.Clone(s.Workers)
	for i := range s.Workers {
		w := &s.Workers[i]
		w.Slots = max(w.Slots, 1)
		switch {
		case len(w.Command) == 0:
			return s, fmt.Errorf("%s has no command", workerName(i))
		case w.CPU < 0:
			return s, fmt.Errorf("%s: %v cores: want more than 0, or 0 for all", workerName(i), w.CPU)
		}
	}
	if !slices.ContainsFunc(s.Workers, func(w Worker) bool { return !w.Later }) {
		return s, fmt.Errorf("no worker is there from the beginning")
	}
	s.Front.Kind, s.Ready = cmp.Or(s.Front.Kind, scenario.FrontNone), cmp.Or(s.Ready, readyTime)
	if !slices.Contains(Kinds(), string(s.Front.Kind)) {
		return s, fmt.Errorf("front %q: there are %s", s.Front.Kind, strings.Join(Kinds(), ", "))
	}
	if s.Front.Policy != "" && slices.Contains([]scenario.FrontKind{scenario.FrontNone, scenario.FrontDNS, scenario.FrontDNAT}, s.Front.Kind) {
		return s, fmt.Errorf("front %s has no policies to choose from", s.Front.Kind)
	}
	if s.Front.Starts && s.Front.Kind != scenario.FrontCabrank {
		return s, fmt.Errorf("front %s cannot start workers, only cabrank can", s.Front.Kind)
	}
	if s.Scale == 0 {
		s.Scale = Scale(s.Cores())
	}
	return s, nil
}

// Kinds lists the fronts that there are. Where FrontDNAT is not allowed FrontHAProxyTCP is in
// its place.
func Kinds() (all []string) {
	for _, kind := range []scenario.FrontKind{scenario.FrontNone, scenario.FrontDNS, scenario.FrontDNAT, scenario.FrontCabrank} {
		all = append(all, string(kind))
	}
	for _, proxy := range proxies.All() { // which have the names of the other kinds
		all = append(all, proxy.Name)
	}
	slices.Sort(all)
	return all
}
