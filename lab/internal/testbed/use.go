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
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Use is what a process has used since it began and holds now, with all that it has started.
type Use struct {
	// CPU is user and system time, also of children that have ended and that their
	// parent has waited for; theirs is counted in ticks of 10 ms.
	CPU time.Duration
	// RSS is what they hold in memory, in bytes, and PeakRSS the sum of the most that
	// each of them has held. Pages that several of them map count for each.
	RSS, PeakRSS int64
}

// userTick is the unit of CPU times in /proc: USER_HZ, which is 100 on every Linux
// that Go supports.
const userTick = 10 * time.Millisecond

// ReadUse adds up a process and its descendants. What ends meanwhile is left out; the
// process itself must live. It fails where there is no /proc.
func ReadUse(pid int) (sum Use, err error) {
	all, err := tree(pid)
	for _, p := range all {
		stat, statErr := p.Stat()
		one, oneErr := ReadAlone(p.PID)
		if statErr != nil || oneErr != nil {
			continue
		}
		sum.CPU += one.CPU + time.Duration(stat.CUTime+stat.CSTime)*userTick
		sum.RSS += one.RSS
		sum.PeakRSS += one.PeakRSS
	}
	return sum, err
}

// ReadAlone reads a process without those that it has started.
func ReadAlone(pid int) (one Use, err error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return one, err
	}
	status, err := p.NewStatus()
	if err != nil {
		return one, err
	}
	one.RSS, one.PeakRSS = int64(status.VmRSS), int64(status.VmHWM)
	one.CPU, err = cpuTime(pid)
	return one, err
}

// OwnCPU is the user and system time of this process.
func OwnCPU() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // it cannot fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cpuTime reads the CPU clock of another process (clock_getcpuclockid(3)): in
// nanoseconds, and with the threads that have ended. /proc has ticks.
func cpuTime(pid int) (time.Duration, error) {
	const schedClock = 2 // CPUCLOCK_SCHED of the kernel's posix-timers
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|schedClock), &t); err != nil {
		return 0, fmt.Errorf("CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

func tree(root int) (all []procfs.Proc, err error) {
	procs, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	children := map[int][]procfs.Proc{}
	for _, p := range procs {
		if p.PID == root {
			all = append(all, p)
		}
		if stat, err := p.Stat(); err == nil { // it may have ended since
			children[stat.PPID] = append(children[stat.PPID], p)
		}
	}
	if all == nil {
		return nil, fmt.Errorf("process %d has ended", root)
	}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i].PID]...)
	}
	return all, nil
}

// Children are the processes that a process has started, by the value of a variable in
// their environment; those without it are left out.
func Children(pid int, variable string) map[string]int {
	found := map[string]int{}
	procs, _ := procfs.AllProcs() // without it nobody is found
	for _, p := range procs {
		if stat, err := p.Stat(); err != nil || stat.PPID != pid {
			continue
		}
		environment, _ := p.Environ() // it may have ended
		for _, setting := range environment {
			if name, value, _ := strings.Cut(setting, "="); name == variable {
				found[value] = p.PID
			}
		}
	}
	return found
}

// ReadBusy returns for how long the cores of the machine were busy, added up: neither idle
// nor waiting for a disk. What a hypervisor has taken counts.
func ReadBusy() (time.Duration, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, err
	}
	stat, err := proc.Stat()
	c := stat.CPUTotal // a guest's time is in User
	return time.Duration((c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal) * float64(time.Second)), err
}

// StartNoise begins to measure how much of the machine others use than this process and all
// that it has started, and what a hypervisor takes. What it returns tells how many cores that
// were on average since then; 0 if it cannot be known. Time is counted in ticks of 10 ms for
// each core: it takes a second to tell a tenth of a core.
func StartNoise() (cores func() float64) {
	began := time.Now()
	busyThen, ownThen, knownThen := usedByAll()
	return func() float64 {
		busy, own, known := usedByAll()
		lasted := time.Since(began)
		if !known || !knownThen || lasted <= 0 {
			return 0
		}
		return max(0, ((busy-busyThen)-(own-ownThen)).Seconds()/lasted.Seconds())
	}
}

// usedByAll is the CPU that everybody has used, and this process with what it has
// started, also with what has ended.
func usedByAll() (busy, own time.Duration, known bool) {
	busy, err := ReadBusy()
	if err != nil {
		return 0, 0, false
	}
	use, err := ReadUse(os.Getpid())
	return busy, use.CPU, err == nil
}

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

// Refuse says in a line what stands against a demand, with what to do; empty if nothing does.
// What is above the limits of the machine would be measured instead of what is to be compared.
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
