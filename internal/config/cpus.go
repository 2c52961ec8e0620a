package config

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// UsableCPUs returns how many CPUs this process may really use: visible (the
// machine's, less what the affinity mask takes away) or, if lower, what the
// CPU quotas of its control groups come to, rounded up; at least 1.
//
// root is the file system that has /proc and /sys; where they are missing, as
// on macOS, visible is returned. Unlike the runtime's own GOMAXPROCS, which
// does not go below 2 for a quota, a quota of one CPU gives 1: a second worker
// on one CPU only takes memory.
//
// Source: Linux Documentation/admin-guide/cgroup-v2.rst (cpu.max) and
// Documentation/scheduler/sched-bwc.rst (cpu.cfs_quota_us, cpu.cfs_period_us).
func UsableCPUs(root fs.FS, visible int) int {
	usable := max(visible, 1)
	groups := readLines(root, "proc/self/cgroup")
	for _, mount := range cgroupMounts(root) {
		group, found := groupOf(groups, mount.v2)
		if !found {
			continue
		}
		for _, directory := range mount.directories(group) {
			quota, period, limited := readQuota(root, directory, mount.v2)
			if limited {
				usable = min(usable, max(1, int((quota+period-1)/period)))
			}
		}
	}
	return usable
}

// cgroupMount is a place where control groups that limit CPU are mounted.
type cgroupMount struct {
	root  string // the group that is mounted, seen from the hierarchy's root
	point string // where it is mounted
	v2    bool
}

// cgroupMounts reads /proc/self/mountinfo. Shape of a line (proc(5)): id,
// parent, device, root, mount point, options, optional fields, "-", file
// system type, source, super options.
func cgroupMounts(root fs.FS) []cgroupMount {
	var mounts []cgroupMount
	for _, line := range readLines(root, "proc/self/mountinfo") {
		before, after, found := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !found || len(fields) < 5 || len(kind) < 3 {
			continue
		}
		mount := cgroupMount{root: unescape(fields[3]), point: unescape(fields[4]), v2: kind[0] == "cgroup2"}
		if mount.v2 || kind[0] == "cgroup" && hasWord(kind[2], "cpu") {
			mounts = append(mounts, mount)
		}
	}
	return mounts
}

// groupOf finds this process's group in the lines of /proc/self/cgroup. Shape
// (cgroups(7)): hierarchy, controllers, path with colons between; version 2 is
// "0::/path".
func groupOf(lines []string, v2 bool) (group string, found bool) {
	for _, line := range lines {
		fields := strings.SplitN(line, ":", 3)
		if len(fields) != 3 {
			continue
		}
		isV2 := fields[0] == "0" && fields[1] == ""
		if isV2 == v2 && (v2 || hasWord(fields[1], "cpu")) {
			return fields[2], true
		}
	}
	return "", false
}

// directories returns the group's own directory and those above it, up to the
// mount: each of them may have a quota, and the lowest one binds.
func (m cgroupMount) directories(group string) []string {
	below, inside := strings.CutPrefix(path.Clean(group), strings.TrimSuffix(m.root, "/"))
	if !inside || strings.HasPrefix(below, "/..") || below != "" && below[0] != '/' {
		below = "" // a group outside of what is mounted: the mount is all we see
	}
	var directories []string
	for {
		directories = append(directories, path.Join(m.point, below))
		if below == "" || below == "/" {
			return directories
		}
		below = path.Dir(below)
	}
}

// readQuota reads the CPU time in microseconds that a group may use per
// period; limited is false if there is no quota or it cannot be read.
func readQuota(root fs.FS, directory string, v2 bool) (quota, period int64, limited bool) {
	var fields []string
	if v2 {
		fields = strings.Fields(readText(root, directory+"/cpu.max"))
	} else {
		fields = strings.Fields(readText(root, directory+"/cpu.cfs_quota_us") + " " + readText(root, directory+"/cpu.cfs_period_us"))
	}
	if len(fields) != 2 {
		return 0, 0, false
	}
	quota, quotaErr := strconv.ParseInt(fields[0], 10, 64) // "max" and -1: no quota
	period, periodErr := strconv.ParseInt(fields[1], 10, 64)
	if quotaErr != nil || periodErr != nil || quota <= 0 || period <= 0 || quota > 1<<40 {
		return 0, 0, false
	}
	return quota, period, true
}

func readText(root fs.FS, name string) string {
	content, err := fs.ReadFile(root, strings.TrimPrefix(path.Clean(name), "/"))
	if err != nil {
		return "" // not there, or not for us: no quota is known
	}
	return string(content)
}

func readLines(root fs.FS, name string) []string {
	return strings.Split(readText(root, name), "\n")
}

func hasWord(list, word string) bool {
	for item := range strings.SplitSeq(list, ",") {
		if item == word {
			return true
		}
	}
	return false
}

// unescape undoes the octal escapes (\040 for a space) of mountinfo.
func unescape(field string) string {
	var plain strings.Builder
	for i := 0; i < len(field); i++ {
		if field[i] == '\\' && i+3 < len(field) {
			if code, err := strconv.ParseUint(field[i+1:i+4], 8, 8); err == nil {
				plain.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		plain.WriteByte(field[i])
	}
	return plain.String()
}
