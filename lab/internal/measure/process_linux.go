package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ReadProcess adds up a process and its descendants. Only those that live
// count, so nothing may exit between two samples.
func ReadProcess(pid int) (Process, error) {
	var sum Process
	pids, err := tree(pid)
	if err != nil {
		return sum, err
	}
	for _, p := range pids {
		if err := sum.add(p); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

func (u *Process) add(pid int) error {
	cpu, err := cpuTime(pid)
	if err != nil {
		return err
	}
	stat, err := statFields(pid)
	if err != nil {
		return err
	}
	u.CPU += cpu
	u.User += number(stat[11])
	u.System += number(stat[12])
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		return err
	}
	for _, path := range threads {
		u.Switches += contextSwitches(path)
	}
	return nil
}

// cpuTime reads the CPU clock of another process (clock_getcpuclockid(3)): in
// nanoseconds, and with the threads that have ended.
func cpuTime(pid int) (time.Duration, error) {
	const schedClock = 2 // CPUCLOCK_SCHED of the kernel's posix-timers
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|schedClock), &t); err != nil {
		return 0, fmt.Errorf("CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// statFields returns /proc/PID/stat behind the name: [0] is the state (field 3
// of proc(5)), [1] the parent.
func statFields(pid int) ([]string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	return parseStat(string(b))
}

func parseStat(line string) ([]string, error) {
	behind := line[strings.LastIndexByte(line, ')')+1:] // a name may hold blanks and brackets
	fields := strings.Fields(behind)
	if len(fields) < 15 {
		return nil, fmt.Errorf("/proc stat: %d fields behind the name in %q", len(fields), line)
	}
	return fields, nil
}

// tree returns a process and all its descendants.
func tree(root int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if stat, err := statFields(pid); err == nil { // it may have ended since
			parent := int(number(stat[1]))
			children[parent] = append(children[parent], pid)
		}
	}
	all := []int{root}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all, nil
}

// ReadMemory adds up what a process and its descendants hold.
func ReadMemory(pid int) (Memory, error) {
	var sum Memory
	pids, err := tree(pid)
	if err != nil {
		return sum, err
	}
	for _, p := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p))
		if err != nil {
			return sum, err
		}
		one := parseRollup(string(b))
		sum.RSSKiB += one.RSSKiB
		sum.PSSKiB += one.PSSKiB
		sum.FileKiB += one.FileKiB
	}
	return sum, nil
}

// parseRollup reads lines such as "Rss:  1234 kB" (proc_pid_smaps(5)).
func parseRollup(text string) (m Memory) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		kib := strings.TrimSuffix(strings.TrimSpace(value), " kB")
		switch name {
		case "Rss":
			m.RSSKiB = number(kib)
		case "Pss":
			m.PSSKiB = number(kib)
		case "Pss_File":
			m.FileKiB = number(kib)
		}
	}
	return m
}

func contextSwitches(statusPath string) (n uint64) {
	b, err := os.ReadFile(statusPath)
	if err != nil {
		return 0 // the thread has ended since
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		if strings.HasSuffix(name, "_ctxt_switches") {
			n += number(strings.TrimSpace(value))
		}
	}
	return n
}

func number(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0 // the kernel writes numbers; 0 is seen in the result
	}
	return n
}

// ReadHost reads the counters of the machine and of this network namespace.
func ReadHost() (Host, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Host{}, err
	}
	dev, err := os.ReadFile("/proc/net/dev")
	if err != nil {
		return Host{}, err
	}
	h := Host{Busy: parseBusy(string(stat))}
	h.Bytes, h.Packets = parseLoopback(string(dev))
	return h, nil
}

// parseBusy reads the cpuN lines of /proc/stat: all but idle and iowait, and
// not guest, which user contains.
func parseBusy(stat string) (seconds []float64) {
	const ticksPerSecond = 100 // USER_HZ is 100 on every Linux that Go supports
	for line := range strings.Lines(stat) {
		f := strings.Fields(line)
		if len(f) < 9 || !strings.HasPrefix(f[0], "cpu") || f[0] == "cpu" {
			continue
		}
		ticks := number(f[1]) + number(f[2]) + number(f[3]) + number(f[6]) + number(f[7]) + number(f[8])
		seconds = append(seconds, float64(ticks)/ticksPerSecond)
	}
	return seconds
}

func parseLoopback(dev string) (bytes, packets uint64) {
	for line := range strings.Lines(dev) {
		name, rest, _ := strings.Cut(line, ":")
		if f := strings.Fields(rest); strings.TrimSpace(name) == "lo" && len(f) > 1 {
			return number(f[0]), number(f[1])
		}
	}
	return 0, 0
}
