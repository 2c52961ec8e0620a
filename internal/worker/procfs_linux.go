package worker

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// ticksPerSecond is the unit of CPU times in /proc: USER_HZ, which is 100 on
// every architecture that Go knows (proc(5), time(7)).
const ticksPerSecond = 100

// processStat is the fields of /proc/PID/stat that are used here (proc(5), fields
// 3, 5, 14 and 15).
type processStat struct {
	state byte // R, S, D, T, Z, X …
	group int
	ticks int64 // CPU time of all its threads, user and system
}

// dead reports whether the process only waits to be reaped.
func (s processStat) dead() bool { return s.state == 'Z' || s.state == 'X' }

func readStat(pid int) (processStat, error) {
	content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return processStat{}, err
	}
	return parseStat(content)
}

// parseStat reads "PID (name) state ppid group …". The name may hold spaces and
// parentheses, so fields are counted from the last one.
func parseStat(content []byte) (processStat, error) {
	end := bytes.LastIndexByte(content, ')')
	fields := bytes.Fields(content[end+1:])
	if end < 0 || len(fields) < 13 {
		return processStat{}, fmt.Errorf("unexpected form of /proc/PID/stat: %q", content)
	}
	group, err := strconv.Atoi(string(fields[2]))
	if err != nil {
		return processStat{}, fmt.Errorf("process group in /proc/PID/stat: %w", err)
	}
	user, err := strconv.ParseInt(string(fields[11]), 10, 64)
	if err != nil {
		return processStat{}, fmt.Errorf("user time in /proc/PID/stat: %w", err)
	}
	system, err := strconv.ParseInt(string(fields[12]), 10, 64)
	if err != nil {
		return processStat{}, fmt.Errorf("system time in /proc/PID/stat: %w", err)
	}
	return processStat{state: fields[0][0], group: group, ticks: user + system}, nil
}

// groupMembers returns the processes of a group, zombies included. It reads one
// file per process of the machine: for rare moments, not for polling.
func groupMembers(group int) []int {
	var members []int
	eachProcess(func(pid, of int) {
		if of == group {
			members = append(members, pid)
		}
	})
	return members
}

// eachProcess calls each for every process of the machine, zombies included.
func eachProcess(each func(pid, group int)) {
	proc, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if stat, err := readStat(pid); err == nil {
			each(pid, stat.group)
		}
	}
}
