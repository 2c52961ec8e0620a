package quota

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Group is a control group.
type Group struct {
	// Cores is its quota, 0 for none.
	Cores float64

	tree    *Tree
	folders []string // that of cpu first
}

// leastQuota is what the kernel takes for a period (sched-bwc.rst).
const leastQuota = time.Millisecond

// Group makes one. cores is how many it may use, 0 for all.
func (t *Tree) Group(name string, cores float64) (*Group, error) {
	g := &Group{Cores: cores, tree: t, folders: []string{path.Join(t.cpu, name)}}
	if t.count != "" && t.count != t.cpu {
		g.folders = append(g.folders, path.Join(t.count, name))
	}
	for _, folder := range g.folders {
		if err := t.files.mkdir(folder); err != nil {
			return nil, err
		}
	}
	t.made = append(t.made, g)
	if cores == 0 {
		return g, nil
	}
	quota := time.Duration(cores * float64(period))
	if quota < leastQuota {
		return nil, fmt.Errorf("a quota of %.4f cores is less than the kernel knows: want %v or more", cores, leastQuota.Seconds()/period.Seconds())
	}
	if err := g.limit(quota); err != nil {
		return nil, err
	}
	return g, nil
}

func (g *Group) limit(quota time.Duration) error {
	micros, of := strconv.FormatInt(quota.Microseconds(), 10), strconv.FormatInt(period.Microseconds(), 10)
	write := func(name, text string) error { return g.tree.files.write(path.Join(g.folders[0], name), text) }
	if g.tree.v2 {
		return write("cpu.max", micros+" "+of)
	}
	return errors.Join(write("cpu.cfs_period_us", of), write("cpu.cfs_quota_us", micros))
}

// preferred is the weight of a group that goes before others, ten times theirs.
const preferred = 10

// Prefer has the group go before others where all want the CPU: who makes the load has
// machines of its own in the world that is measured.
func (g *Group) Prefer() error {
	if g.tree.v2 {
		return g.tree.files.write(path.Join(g.folders[0], "cpu.weight"), strconv.Itoa(preferred*100))
	}
	return g.tree.files.write(path.Join(g.folders[0], "cpu.shares"), strconv.Itoa(preferred*1024))
}

// enter is a program of sh that puts itself into groups and becomes a command, so that
// nothing runs outside before. Its status is 125 if it may not.
const enter = `while [ "$1" != -- ]; do echo 0 >"$1" || exit 125; shift; done; shift; exec "$@"`

// Enter is what is put before a command that is to run in the group. It becomes the
// command.
func (g *Group) Enter() []string {
	command := []string{"/bin/sh", "-c", enter, "sh"}
	for _, folder := range g.folders {
		command = append(command, path.Join(folder, "cgroup.procs"))
	}
	return append(command, "--")
}

// Use is what the processes of a group have used since it was made, those that have
// ended included.
type Use struct {
	CPU time.Duration
	// Throttled is how many periods of 100 ms ended with the quota used up,
	// ThrottledFor how long processes stood still for it, added up over cores.
	Throttled    int64
	ThrottledFor time.Duration
}

// Read returns it; counted is false if the CPU is not known.
func (g *Group) Read() (u Use, counted bool) {
	stat, err := g.tree.files.read(path.Join(g.folders[0], "cpu.stat"))
	if err != nil {
		return u, false
	}
	values := map[string]int64{}
	for line := range strings.Lines(stat) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			values[name] = n
		}
	}
	u.Throttled = values["nr_throttled"]
	if g.tree.v2 {
		u.ThrottledFor = time.Duration(values["throttled_usec"]) * time.Microsecond
		u.CPU, counted = time.Duration(values["usage_usec"])*time.Microsecond, true
		return u, counted
	}
	u.ThrottledFor = time.Duration(values["throttled_time"])
	text, err := g.tree.files.read(path.Join(g.folders[len(g.folders)-1], "cpuacct.usage"))
	if err != nil {
		return u, false
	}
	nanos, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	u.CPU = time.Duration(nanos)
	return u, err == nil
}

// PIDs are the processes in it.
func (g *Group) PIDs() (pids []int) {
	text, _ := g.tree.files.read(path.Join(g.folders[0], "cgroup.procs")) // removed: none
	for line := range strings.Lines(text) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// end kills what runs in the group and removes it; left says that something is there
// still. All of it was started through Enter.
func (g *Group) end() (left bool) {
	for _, pid := range g.PIDs() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	for _, folder := range g.folders {
		if err := g.tree.files.rmdir(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			left = true
		}
	}
	return left
}
