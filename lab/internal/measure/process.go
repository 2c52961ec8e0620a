package measure

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// Process is what a process and its children have used since they began.
type Process struct {
	CPU          time.Duration // user + system, from the scheduler's clock
	User, System uint64        // in clock ticks of 10 ms: for the proportion
	Switches     uint64        // context switches of all threads
}

// Memory is what a process and its children hold now. Pages that several
// processes map count for each of them in RSS and once in all in PSS. File is
// the part of PSS that is pages of files: the program and its libraries.
type Memory struct {
	RSSKiB  uint64 `json:"rss_kib"`
	PSSKiB  uint64 `json:"pss_kib"`
	FileKiB uint64 `json:"pss_file_kib"`
}

// ReadProcess adds up a process and its descendants. Only those that live
// count, so nothing may exit between two samples.
func ReadProcess(pid int) (sum Process, err error) {
	all, err := tree(pid)
	if err != nil {
		return sum, err
	}
	for _, p := range all {
		cpu, err := cpuTime(p.PID)
		if err != nil {
			return sum, err
		}
		stat, err := p.Stat()
		if err != nil {
			return sum, err
		}
		threads, err := procfs.AllThreads(p.PID)
		if err != nil {
			return sum, err
		}
		sum.CPU += cpu
		sum.User += uint64(stat.UTime)
		sum.System += uint64(stat.STime)
		for _, thread := range threads {
			status, _ := thread.NewStatus() // it may have ended since
			sum.Switches += status.TotalCtxtSwitches()
		}
	}
	return sum, nil
}

// ReadMemory adds up what a process and its descendants hold.
func ReadMemory(pid int) (sum Memory, err error) {
	all, err := tree(pid)
	if err != nil {
		return sum, err
	}
	for _, p := range all {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.PID))
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

// parseRollup reads lines such as "Rss:  1234 kB" (proc_pid_smaps(5)); the library leaves
// Pss_File out.
func parseRollup(text string) (m Memory) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64) // 0 is seen in the result
		switch name {
		case "Rss":
			m.RSSKiB = kib
		case "Pss":
			m.PSSKiB = kib
		case "Pss_File":
			m.FileKiB = kib
		}
	}
	return m
}
