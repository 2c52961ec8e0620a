package rig

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/cgroup"
	"github.com/cabrank/cabrank/internal/testkit/ports"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/testbed"
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
	Ready    time.Duration // bounds how long all of it may take to answer; 0: 30 s
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

type place struct {
	host string
	port int
}

func (p place) addr() string { return net.JoinHostPort(p.host, strconv.Itoa(p.port)) }

// places finds some for all workers, and a port for the front. A name stands for
// addresses and has one port: behind one, workers differ by address.
func (s Spec) places() (workers []place, front place, err error) {
	if s.Front.Kind == scenario.FrontDNAT { // nobody else is in its network
		for i := range s.Workers {
			workers = append(workers, place{testbed.Pod(i).String(), s.port()})
		}
		return workers, place{testbed.Service, s.port()}, nil
	}
	hosts := make([]string, len(s.Workers))
	for i := range hosts {
		hosts[i] = "127.0.0.1"
		if s.Front.Kind == scenario.FrontDNS {
			hosts[i] = fmt.Sprintf("127.0.%d.%d", i/250, 1+i%250)
		}
	}
	needed := len(hosts) + 1
	if s.Front.Kind == scenario.FrontDNS {
		needed = 2
	}
	first, err := ports.Free(needed, hosts...)
	if err != nil {
		return nil, front, err
	}
	front = place{"127.0.0.1", first}
	for i, host := range hosts {
		port := first + 1 + i
		if s.Front.Kind == scenario.FrontDNS {
			port = first + 1
			if s.Workers[0].Port != 0 {
				port = s.Workers[0].Port
			}
		} else if s.Workers[i].Port != 0 {
			port = s.Workers[i].Port
		}
		workers = append(workers, place{host, port})
	}
	return workers, front, nil
}

// podPort is that of workers which have an address each, unless another is asked for.
const podPort = 8080

// port is that of all workers where they differ by address.
func (s Spec) port() int { return cmp.Or(s.Workers[0].Port, podPort) }

// told is the worker with what is replaced in its command and environment.
func (w Worker) told(index int, at place) (command, env []string) {
	command, env = filled(w.Command, w.Env,
		"{addr}", at.addr(), "{host}", at.host, "{port}", strconv.Itoa(at.port),
		"{index}", strconv.Itoa(index), "{worker}", workerName(index), "{slots}", strconv.Itoa(w.Slots), "{threads}", strconv.Itoa(w.Slots))
	return command, append(env,
		"CABRANK_ADDR="+at.addr(), "PORT="+strconv.Itoa(at.port), "CABRANK_WORKER="+workerName(index),
		"CABRANK_WORKER_INDEX="+strconv.Itoa(index),
		"CABRANK_SLOTS="+strconv.Itoa(w.Slots), "CABRANK_THREADS="+strconv.Itoa(w.Slots), "RAILS_MAX_THREADS="+strconv.Itoa(w.Slots),
	)
}

// filled is a command and an environment, NAME=VALUE, with marks replaced: each is followed
// by what stands for it.
func filled(command, env []string, marks ...string) (filledCommand, filledEnv []string) {
	fill := strings.NewReplacer(marks...).Replace
	for _, word := range command {
		filledCommand = append(filledCommand, fill(word))
	}
	for _, setting := range env {
		name, value, _ := strings.Cut(setting, "=")
		filledEnv = append(filledEnv, name+"="+fill(value))
	}
	return filledCommand, filledEnv
}

// Cores is how many cores the processes of an arm may use in all, before Scale; 0 if no
// process has a quota.
func (s Spec) Cores() float64 {
	sum := s.Front.CPU
	for _, w := range s.Workers {
		sum += w.CPU
	}
	return sum
}

// Scale is what all quotas are to be multiplied with, so that an arm of so many cores has them on
// this machine while one core makes the load: 1 or less. A scenario has one for all of its arms.
func Scale(cores float64) float64 {
	return scale(cores, cgroup.Find(os.DirFS("/")).CPUs(runtime.NumCPU()))
}

// scale leaves half to the load where there is one core or less for all.
func scale(cores, machine float64) float64 {
	if cores <= 0 {
		return 1
	}
	return min(1, max(machine-1, machine/2)/cores)
}

// openGroups finds a place for control groups. Where there is none the arm runs without,
// and that is said if quotas were asked for.
func (r *Rig) openGroups() {
	tree, err := testbed.OpenGroups()
	switch {
	case err == nil:
		r.tree = tree
		if r.spec.Scale < 1 && r.spec.Cores() > 0 {
			r.notes = append(r.notes, fmt.Sprintf("Quotas of CPU are %.0f %% of what the scenario says, so that one of %d cores makes the load.", 100*r.spec.Scale, runtime.NumCPU()))
		}
	case r.spec.Cores() > 0:
		r.notes = append(r.notes, fmt.Sprintf("No quotas of CPU: %v. Processes may use all cores, so nothing is said about equal CPU.", err))
	}
}

// newGroup makes a control group, or none where that is not allowed.
func (r *Rig) newGroup(name string, cores float64) (*testbed.Group, error) {
	if r.tree == nil {
		return nil, nil
	}
	g, err := r.tree.Group(name, cores*r.spec.Scale)
	if err != nil {
		return nil, fmt.Errorf("control group of %s: %w", name, err)
	}
	return g, nil
}

// file is the path of a file of the arm.
func (r *Rig) file(name string) string { return filepath.Join(r.folder, name) }

// log is where a process of an arm writes, beside what is kept for errors.
func (s *Spec) log(process string) string {
	if s.Programs.Logs == "" {
		return ""
	}
	name := strings.Map(func(c rune) rune {
		if c == '/' || c < ' ' {
			return '-'
		}
		return c
	}, s.Name+", "+process)
	return filepath.Join(s.Programs.Logs, name+".log")
}
