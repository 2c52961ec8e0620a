package testbed

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Use is what a process has used since it began and holds now, with all that it has
// started.
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
