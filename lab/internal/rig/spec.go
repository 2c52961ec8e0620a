package rig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Worker is one process that answers calls.
type Worker struct {
	Name    string   // of events and in errors; empty: worker-1 and so on
	Command []string // see the package comment for what is replaced in it
	Env     []string // NAME=VALUE, beside the environment of this process; the same is replaced
	Dir     string   // where it runs; empty: where this process does
	Slots   int      // calls that it takes at a time; 0: 1
	CPU     float64  // cores that it may use, before Spec.Scale; 0: all
	Port    int      // 0: chosen
	Cores   string   // those that it runs on, as taskset counts; empty: all
	Later   bool     // started by the event Add, and not before
}

// Kind is what stands between callers and workers.
type Kind string

// The kinds of fronts.
const (
	// None has callers call the first worker.
	None Kind = "none"
	// DNS has them look up a name that stands for all workers.
	DNS Kind = "dns"
	// DNAT has the kernel send each connection to one of them by chance, as kube-proxy
	// does for a Service; where that is not allowed HAProxyTCP is in its place.
	DNAT Kind = "dnat"
	// Cabrank is this program, as anybody starts it.
	Cabrank Kind = "cabrank"
)

// kinds lists them for messages, with what starts each.
func kinds() map[Kind]func(*Rig) front {
	return map[Kind]func(*Rig) front{
		None:       newNoFront,
		DNS:        newNameFront,
		DNAT:       newServiceFront,
		Cabrank:    newCabrankFront,
		HAProxyTCP: newProxyFront,
		HAProxy:    newProxyFront,
		Envoy:      newProxyFront,
		Nginx:      newProxyFront,
		Nghttpx:    newProxyFront,
	}
}

// Front is what stands between callers and workers, and how it is set.
type Front struct {
	Kind Kind // empty: None
	// Starts has cabrank start the workers itself. All have one command then.
	Starts bool
	// Policy is how it chooses a worker, in its own words, such as LEAST_REQUEST;
	// empty: as it does when nothing is said.
	Policy string
	// Threads is how many of a proxy move calls; 0: 1. Cabrank finds its own number.
	Threads int
	// Args are put behind its own; Env is beside the environment of this process.
	Args, Env []string
	CPU       float64 // cores that it may use, before Spec.Scale; 0: all
	Cores     string  // those that it runs on, as taskset counts; empty: all
	// TTL is for how long a name may be remembered; 0: 1 s.
	TTL time.Duration
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
	Front   Front
	Gateway Gateway
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
	names := map[string]bool{}
	for i := range s.Workers {
		w := &s.Workers[i]
		w.Name, w.Slots = cmp.Or(w.Name, fmt.Sprintf("worker-%d", i+1)), max(w.Slots, 1)
		switch {
		case names[w.Name]:
			return s, fmt.Errorf("two workers are called %q", w.Name)
		case len(w.Command) == 0:
			return s, fmt.Errorf("%s has no command", w.Name)
		case w.CPU < 0:
			return s, fmt.Errorf("%s: %v cores: want more than 0, or 0 for all", w.Name, w.CPU)
		}
		names[w.Name] = true
	}
	if !slices.ContainsFunc(s.Workers, func(w Worker) bool { return !w.Later }) {
		return s, fmt.Errorf("no worker is there from the beginning")
	}
	s.Front.Kind, s.Ready = cmp.Or(s.Front.Kind, None), cmp.Or(s.Ready, readyTime)
	if _, known := kinds()[s.Front.Kind]; !known {
		return s, fmt.Errorf("front %q: there are %s", s.Front.Kind, strings.Join(Kinds(), ", "))
	}
	if s.Front.Policy != "" && (s.Front.Kind == None || s.Front.Kind == DNS || s.Front.Kind == DNAT) {
		return s, fmt.Errorf("front %s has no policies to choose from", s.Front.Kind)
	}
	if s.Front.Starts && s.Front.Kind != Cabrank {
		return s, fmt.Errorf("front %s cannot start workers, only cabrank can", s.Front.Kind)
	}
	if s.Scale == 0 {
		s.Scale = Scale(s.Cores())
	}
	return s, nil
}

// Kinds lists the fronts that there are.
func Kinds() (all []string) {
	for kind := range kinds() {
		all = append(all, string(kind))
	}
	slices.Sort(all)
	return all
}
