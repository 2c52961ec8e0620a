// Package testbed is what every comparison stands on: the machine and what is known of
// it, a network of its own, a place before others on the processor, and processes that
// are pinned to cores. It knows nothing of what is measured.
//
// OpenGroups finds a place where control groups can be made, of version 1 or 2:
// Tree.Group makes one, with a quota of CPU time, and Group.Enter is the command by which a
// process begins in it. StartPods makes a network like that of one node of a cluster:
// addresses for pods that are not loopback, and a Service, an address behind which the
// kernel sends each new connection to a pod by chance, as kube-proxy has it do. Where the
// machine does not allow one of them it says so in a line, with what to do.
package testbed

import (
	"runtime"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
)

// Machine is where it was measured.
type Machine struct {
	CPU        string
	Cores      int
	Kernel, Go string
}

// ThisMachine describes it. Unlike runtime.NumCPU it also sees the cores that this process is
// not pinned to.
func ThisMachine() Machine {
	m := Machine{Go: runtime.Version()}
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return m
	}
	kernel, _ := proc.SysctlStrings("kernel.osrelease") // without it there is no name
	m.Kernel = strings.Join(kernel, " ")
	cores, _ := proc.CPUInfo()
	var models []string
	for _, core := range cores {
		models = append(models, core.ModelName)
	}
	slices.Sort(models)
	m.Cores, m.CPU = len(cores), strings.Join(slices.Compact(models), ", ")
	return m
}
