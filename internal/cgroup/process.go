package cgroup

import (
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU times in /proc: USER_HZ, which is 100 on every
// architecture that Go knows (proc(5), time(7)).
const tick = time.Second / 100

// Processes are the living processes of one process group.
type Processes struct {
	PIDs []int
	// CPU is the time they have used since each began, children included that
	// they have waited for. It falls when one of them ends whose parent is not
	// in the group.
	CPU time.Duration
}

// ReadProcesses looks at all processes of the machine once and returns those of
// the process groups asked for, by group. A group without a living process is
// left out.
//
// Cost: one small file for each process of the machine, about 15 us each: for
// once in a second, not for every call.
func ReadProcesses(root fs.FS, groups []int) map[int]Processes {
	found := make(map[int]Processes, len(groups))
	for _, group := range groups {
		found[group] = Processes{}
	}
	EachProcess(root, func(pid int, p Stat) {
		if members, wanted := found[p.Group]; wanted && !p.Dead() {
			found[p.Group] = Processes{PIDs: append(members.PIDs, pid), CPU: members.CPU + p.CPU + p.Waited}
		}
	})
	for group, members := range found {
		if len(members.PIDs) == 0 {
			delete(found, group)
		}
	}
	return found
}

// EachProcess calls each for every process of the machine, zombies included.
func EachProcess(root fs.FS, each func(pid int, s Stat)) {
	entries, _ := fs.ReadDir(root, "proc") // not there: nothing is known
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if s, known := ReadStat(root, pid); known {
			each(pid, s)
		}
	}
}

// Stat is what /proc/PID/stat tells of a process.
type Stat struct {
	State  byte // R, S, D, T, Z, X …
	Group  int
	CPU    time.Duration // of all its threads
	Waited time.Duration // CPU of its children that it has waited for
}

// Dead reports whether the process only waits to be reaped.
func (s Stat) Dead() bool { return s.State == 'Z' || s.State == 'X' }

// ReadStat reads /proc/PID/stat: "PID (name) state ppid group ...", of which fields 14 to
// 17 are CPU times (proc(5)). The name may hold spaces and parentheses, so fields are
// counted from the last one.
func ReadStat(root fs.FS, pid int) (s Stat, known bool) {
	text := readText(root, "proc/"+strconv.Itoa(pid)+"/stat")
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 15 {
		return Stat{}, false
	}
	group, err := strconv.Atoi(fields[2])
	s = Stat{State: fields[0][0], Group: group}
	for i, field := range fields[11:15] { // utime, stime, cutime, cstime
		ticks, isNumber := parseBytes(field)
		if !isNumber || err != nil {
			return Stat{}, false
		}
		of := []*time.Duration{&s.CPU, &s.Waited}[i/2]
		*of += time.Duration(min(ticks, maxTicks)) * tick
	}
	return s, true
}

// maxTicks keeps sums of CPU times far from overflow: 30 years.
const maxTicks = 30 * 365 * 24 * 3600 * 100

// Memory returns the bytes that the processes have in memory; false if none of
// them can be read any more.
//
// Of a group of one it is the resident set, which costs a line of /proc (25 us).
// Of several it is the sum of their proportional sets: workers that fork share
// most of their pages, and resident sets would count those again for each. A
// proportional set costs a walk over the page tables (16 us per MB, in which the
// process cannot map memory), too much to pay where it tells nothing new. Where
// it may not be read, the resident set stands in.
//
// Source: proc(5), /proc/PID/status (VmRSS; statm has the same in pages of an
// unknown size) and /proc/PID/smaps_rollup.
func (p Processes) Memory(root fs.FS) (bytes int64, known bool) {
	for _, pid := range p.PIDs {
		directory := "proc/" + strconv.Itoa(pid)
		size, read := int64(0), false
		if len(p.PIDs) > 1 {
			size, read = field(readFile(root, directory+"/smaps_rollup", roomForTable), "Pss:", " kB")
		}
		if !read {
			size, read = field(readFile(root, directory+"/status", roomForTable), "VmRSS:", " kB")
		}
		if read {
			bytes, known = bytes+size, true
		}
	}
	return bytes, known
}
