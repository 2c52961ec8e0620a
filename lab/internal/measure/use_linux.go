package measure

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// userTick is the unit of CPU times in /proc: USER_HZ, which is 100 on every Linux
// that Go supports.
const userTick = 10 * time.Millisecond

// ReadUse adds up a process and its descendants. What ends meanwhile is left out; the
// process itself must live.
func ReadUse(pid int) (Use, error) {
	var sum Use
	pids, err := tree(pid)
	if err != nil {
		return sum, err
	}
	if _, err := statFields(pid); err != nil {
		return sum, fmt.Errorf("process %d has ended", pid)
	}
	for _, p := range pids {
		sum.add(p)
	}
	return sum, nil
}

func (u *Use) add(pid int) {
	cpu, err := cpuTime(pid)
	stat, statErr := statFields(pid)
	if err != nil || statErr != nil {
		return
	}
	u.CPU += cpu + time.Duration(number(stat[13])+number(stat[14]))*userTick // cutime, cstime
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))            // without it: nothing
	rss, peak := parseHeld(string(status))
	u.RSS += rss
	u.PeakRSS += peak
}

// parseHeld reads lines such as "VmHWM:  1234 kB" (proc_pid_status(5)).
func parseHeld(status string) (rss, peak int64) {
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		kib := strings.TrimSuffix(strings.TrimSpace(value), " kB")
		switch name {
		case "VmRSS":
			rss = int64(number(kib)) * 1024
		case "VmHWM":
			peak = int64(number(kib)) * 1024
		}
	}
	return rss, peak
}

// ReadAlone reads a process without those that it has started.
func ReadAlone(pid int) (Use, error) {
	var one Use
	cpu, err := cpuTime(pid)
	if err != nil {
		return one, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return one, err
	}
	one.CPU = cpu
	one.RSS, one.PeakRSS = parseHeld(string(status))
	return one, nil
}

// ReadName returns the name of a process, as ps writes it; "" if there is none.
func ReadName(pid int) string {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

// Children are the processes that a process has started, by the value of a variable in
// their environment; those without it are left out.
func Children(pid int, variable string) map[string]int {
	found := map[string]int{}
	entries, _ := os.ReadDir("/proc") // without it nobody is found
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if stat, err := statFields(child); err != nil || int(number(stat[1])) != pid {
			continue
		}
		environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", child)) // it may have ended
		for setting := range strings.SplitSeq(string(environment), "\x00") {
			if name, value, _ := strings.Cut(setting, "="); name == variable {
				found[value] = child
			}
		}
	}
	return found
}
