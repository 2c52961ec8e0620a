package rig

import (
	"fmt"
	"os"
	"runtime"

	"github.com/cabrank/cabrank/internal/cgroup"
	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// Cores is how many cores the processes of an arm may use in all, before Scale; 0 if no
// process has a quota.
func (s Spec) Cores() float64 {
	sum := s.Front.CPU
	for _, w := range s.Workers {
		sum += w.CPU
	}
	return sum
}

// Scale is what all quotas are to be multiplied with, so that an arm of so many cores
// has them on this machine while one core makes the load: 1 or less. A scenario has one
// for all of its arms.
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
