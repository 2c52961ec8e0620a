package cgroup

import (
	"io/fs"
	"math"
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
	return max(1, int(math.Ceil(Find(root).CPUs(visible))))
}

// CPUs returns the CPU seconds per second that this process and what it started
// may use: visible (at least 1), or the lowest quota of its control groups, with
// its fraction.
func (s *Self) CPUs(visible int) float64 {
	usable := float64(max(visible, 1))
	for _, group := range s.cpu {
		if quota, period, limited := readQuota(s.root, group); limited {
			usable = min(usable, float64(quota)/float64(period))
		}
	}
	return usable
}

// readQuota reads the CPU time in microseconds that a group may use per
// period; limited is false if there is no quota or it cannot be read.
func readQuota(root fs.FS, group directory) (quota, period int64, limited bool) {
	var fields []string
	if group.v2 {
		fields = strings.Fields(readText(root, group.path+"/cpu.max"))
	} else {
		fields = strings.Fields(readText(root, group.path+"/cpu.cfs_quota_us") + " " + readText(root, group.path+"/cpu.cfs_period_us"))
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
