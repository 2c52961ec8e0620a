package cgroup

import (
	"bytes"
	"io/fs"
	"strconv"
	"strings"
)

// Self is where the control groups of this process are. They are looked up once:
// a process that is moved to another group later goes on reading the old one.
//
// Concurrency: immutable; its methods may be called by anybody at any time.
type Self struct {
	root   fs.FS
	cpu    []directory
	memory []directory
}

// Find looks up the control groups of this process, of version 1 or 2. root is
// the file system that has /proc and /sys: os.DirFS("/").
func Find(root fs.FS) *Self {
	return &Self{root: root, cpu: directories(root, "cpu"), memory: directories(root, "memory")}
}

// Memory is what may be used and what is used, in bytes.
type Memory struct {
	Limit int64
	Used  int64 // without what the kernel can take back at once; may exceed Limit for a moment
}

// Free returns how many bytes are left, never less than 0.
func (m Memory) Free() int64 { return max(m.Limit-m.Used, 0) }

// Memory returns the memory of the control group, this process's own or one
// above it, that has the least left before its limit; false if none has a limit.
//
// The limit is memory.max or, if lower, memory.high, above which the kernel slows
// the group's processes down; with version 1 it is memory.limit_in_bytes. What is
// used is all that the group is charged for, less the inactive part of its page
// cache: the working set, by which a kubelet evicts.
//
// Cost: three or four small files for each level of groups, about 15 us each.
// Source: Linux Documentation/admin-guide/cgroup-v2.rst (memory) and
// Documentation/admin-guide/cgroup-v1/memory.rst.
func (s *Self) Memory() (Memory, bool) {
	var tightest Memory
	found := false
	for _, group := range s.memory {
		m, limited := readMemory(s.root, group)
		if limited && (!found || m.Free() < tightest.Free()) {
			tightest, found = m, true
		}
	}
	return tightest, found
}

// noLimit is from where on a limit means none: version 1 says "no limit" with
// the largest number of pages that a signed 64-bit count of bytes can hold.
const noLimit = 1 << 60

// readMemory reads one group; limited is false if it has no limit or cannot be
// read.
func readMemory(root fs.FS, group directory) (m Memory, limited bool) {
	limits, used, inactive := []string{"memory.limit_in_bytes"}, "memory.usage_in_bytes", "total_inactive_file"
	if group.v2 {
		limits, used, inactive = []string{"memory.max", "memory.high"}, "memory.current", "inactive_file"
	}
	m.Limit = noLimit
	for _, name := range limits {
		if limit, known := parseBytes(readText(root, group.path+"/"+name)); known {
			m.Limit = min(m.Limit, limit)
		}
	}
	if m.Limit >= noLimit || m.Limit == 0 {
		return Memory{}, false
	}
	charged, known := parseBytes(readText(root, group.path+"/"+used))
	if !known {
		return Memory{}, false
	}
	cache, _ := field(readFile(root, group.path+"/memory.stat", roomForTable), inactive, "")
	m.Used = max(charged-cache, 0)
	return m, true
}

// Machine returns the memory of the machine; false if it is not known. What is
// used is what the kernel could not give away without swapping.
//
// Source: proc(5), /proc/meminfo, MemTotal and MemAvailable.
func Machine(root fs.FS) (Memory, bool) {
	text := readFile(root, "proc/meminfo", roomForTable)
	total, known := field(text, "MemTotal:", " kB")
	available, also := field(text, "MemAvailable:", " kB")
	if !known || !also || total == 0 {
		return Memory{}, false
	}
	return Memory{Limit: total, Used: max(total-available, 0)}, true
}

// OwnMemory returns the memory of this process that no file backs, in bytes; false if
// it is not known. That is what a collector can give back: pages of the program count
// for its control group too, and stay.
//
// Source: proc(5), /proc/self/status (RssAnon).
func OwnMemory(root fs.FS) (size int64, known bool) {
	return field(readFile(root, "proc/self/status", roomForTable), "RssAnon:", " kB")
}

// field finds the line "NAME VALUE" and returns the value as bytes; unit, if not
// empty, must follow it and is " kB".
func field(text []byte, name, unit string) (number int64, known bool) {
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if len(line) <= len(name) || string(line[:len(name)]) != name || line[len(name)] != ' ' && line[len(name)] != '\t' {
			continue
		}
		value, found := strings.CutSuffix(string(line[len(name):]), unit)
		number, valid := parseBytes(value)
		if !found || !valid {
			return 0, false
		}
		if unit != "" {
			number = min(number, noLimit/1024) * 1024
		}
		return number, true
	}
	return 0, false
}

// parseBytes reads a count that is not negative and far from overflow; "max" and
// -1 are none.
func parseBytes(text string) (int64, bool) {
	value, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || value < 0 {
		return 0, false
	}
	return min(value, noLimit), true
}
