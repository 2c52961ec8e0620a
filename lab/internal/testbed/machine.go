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
	"fmt"
	"os"
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
	models := cpuInfo("model name")
	slices.Sort(models)
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease") // elsewhere: none
	return Machine{
		CPU: strings.Join(slices.Compact(models), ", "), Cores: len(cpuInfo("processor")),
		Kernel: strings.TrimSpace(string(kernel)), Go: runtime.Version(),
	}
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

// Limits are how far the machine lets connections go. 0 is not known, and limits nothing.
type Limits struct {
	Files   uint64 // that a process may have open
	Ports   int    // from which connections to one address can go out
	Backlog int    // connections that may wait at a listener to be accepted
}

// ReadLimits reads those of the machine; files is what RaiseFiles has returned.
func ReadLimits(files uint64) Limits {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return Limits{Files: files}
	}
	return limitsOf(proc, files)
}

// Source: Linux Documentation/networking/ip-sysctl.rst (ip_local_port_range) and
// Documentation/admin-guide/sysctl/net.rst (somaxconn).
func limitsOf(proc procfs.FS, files uint64) Limits {
	l := Limits{Files: files}
	if ends, err := proc.SysctlInts("net.ipv4.ip_local_port_range"); err == nil && len(ends) == 2 {
		l.Ports = max(0, ends[1]-ends[0]+1)
	}
	if n, err := proc.SysctlInts("net.core.somaxconn"); err == nil && len(n) == 1 {
		l.Backlog = n[0]
	}
	return l
}

// Demand is what a load needs of the machine.
type Demand struct {
	Connections int // open at the same time
	AtOnce      int // of these, opened in one moment
	Generators  int // processes that they go out from, evenly
	Listeners   int // addresses that they go to, evenly
	// Through says that what listens has a connection of its own for each of them, as
	// something that copies bytes has.
	Through bool
}

// spareFiles is what a process opens beside its connections, amply.
const spareFiles = 100

// Refuse says in a line what stands against a demand, with what to do; empty if nothing
// does. What is above the limits of the machine would be measured instead of what is to
// be compared.
func (l Limits) Refuse(d Demand) string {
	each := func(n, of int) int { return (n + max(of, 1) - 1) / max(of, 1) }
	files := each(d.Connections, d.Generators)
	accepted := each(d.Connections, d.Listeners)
	if d.Through {
		accepted *= 2
	}
	files = max(files, accepted) + spareFiles
	switch {
	case l.Files > 0 && uint64(files) > l.Files:
		return fmt.Sprintf("%d connections need %d open files in one process, %d are allowed (ulimit -n)", d.Connections, files, l.Files)
	case l.Ports > 0 && each(d.Connections, d.Listeners) > l.Ports:
		return fmt.Sprintf("%d connections to one address need as many local ports, there are %d (net.ipv4.ip_local_port_range)", each(d.Connections, d.Listeners), l.Ports)
	case l.Backlog > 0 && each(d.AtOnce, d.Listeners) > l.Backlog:
		return fmt.Sprintf("%d connections at once to one address, where %d may wait to be accepted (net.core.somaxconn)", each(d.AtOnce, d.Listeners), l.Backlog)
	}
	return ""
}
