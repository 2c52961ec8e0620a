// Package testbed is what every comparison stands on: the machine and what is known of
// it, a network of its own, a place before others on the processor, and processes that
// are pinned to cores, with what they use. It knows nothing of what is measured.
//
// OpenGroups finds a place where control groups can be made, of version 1 or 2:
// Tree.Group makes one, with a quota of CPU time, and Group.Enter is the command by which a
// process begins in it. StartPods makes a network like that of one node of a cluster:
// addresses for pods that are not loopback, and a Service, an address behind which the
// kernel sends each new connection to a pod by chance, as kube-proxy has it do. Where the
// machine does not allow one of them it says so in a line, with what to do.
package testbed

import (
	"os"
	"runtime"
	"slices"
	"strings"
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
	models := cpuInfo("model name")
	slices.Sort(models)
	return Machine{
		CPU: strings.Join(slices.Compact(models), ", "), Cores: len(cpuInfo("processor")),
		Kernel: firstLine("/proc/sys/kernel/osrelease"), Go: runtime.Version(),
	}
}

func firstLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

// cpuInfo returns the values of one name in /proc/cpuinfo, one per core.
func cpuInfo(name string) (values []string) {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			values = append(values, strings.TrimSpace(value))
		}
	}
	return values
}
