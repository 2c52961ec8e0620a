package testbed

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
	g := &Group{Cores: cores, tree: t}
	for _, above := range t.folders {
		folder := path.Join(above, name)
		if err := t.files.mkdir(folder); err != nil {
			return nil, err
		}
		g.folders = append(g.folders, folder)
	}
	t.made = append(t.made, g)
	if cores == 0 {
		return g, nil
	}
	quota := time.Duration(cores * float64(period))
	if quota < leastQuota {
		return nil, fmt.Errorf("a quota of %.4f cores is less than the kernel knows: want %v or more", cores, leastQuota.Seconds()/period.Seconds())
	}
	if err := g.limit(quota.Microseconds(), period.Microseconds()); err != nil {
		return nil, err
	}
	return g, nil
}

func (g *Group) limit(quota, of int64) error {
	if g.tree.v2 {
		return g.write("cpu.max", quota, of)
	}
	return errors.Join(g.write("cpu.cfs_period_us", of), g.write("cpu.cfs_quota_us", quota))
}

// write puts numbers into a file of the controller cpu.
func (g *Group) write(name string, numbers ...int64) error {
	return g.tree.files.write(path.Join(g.folders[0], name), strings.Trim(fmt.Sprint(numbers), "[]"))
}

// weigh gives a group so many times the weight of others.
func (t *Tree) weigh(folder string, times int64) error {
	if t.v2 {
		return t.files.write(path.Join(folder, "cpu.weight"), fmt.Sprint(100*times))
	}
	return t.files.write(path.Join(folder, "cpu.shares"), fmt.Sprint(1024*times))
}

// Prefer has the group go before others where all want the CPU, with ten times their
// weight: who makes the load has machines of its own in the world that is measured.
func (g *Group) Prefer() error {
	return g.tree.weigh(g.folders[0], 10)
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

// GroupUse is what the processes of a group have used since it was made, those that have
// ended included.
type GroupUse struct {
	CPU time.Duration
	// Throttled is how many periods of 100 ms ended with the quota used up,
	// ThrottledFor how long processes stood still for it, added up over cores.
	Throttled    int64
	ThrottledFor time.Duration
}

// Read returns it; counted is false if the CPU is not known.
func (g *Group) Read() (u GroupUse, counted bool) {
	stat, err := g.tree.files.read(path.Join(g.folders[0], "cpu.stat"))
	if err != nil {
		return u, false
	}
	values := map[string]int64{}
	for line := range strings.Lines(stat) {
		name, value, _ := strings.Cut(line, " ")
		values[name] = number(value)
	}
	u.Throttled = values["nr_throttled"]
	if g.tree.v2 {
		u.CPU, u.ThrottledFor = time.Duration(1000*values["usage_usec"]), time.Duration(1000*values["throttled_usec"])
		return u, true
	}
	used, err := g.tree.files.read(path.Join(g.folders[len(g.folders)-1], "cpuacct.usage"))
	u.CPU, u.ThrottledFor = time.Duration(number(used)), time.Duration(values["throttled_time"])
	return u, err == nil
}

// number reads one of the kernel's, which are what the files have.
func number(text string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n
}

// end kills what runs in the group and removes it; left says that something is there
// still. All of it was started through Enter.
func (g *Group) end() (left bool) {
	text, _ := g.tree.files.read(path.Join(g.folders[0], "cgroup.procs")) // removed: none
	for line := range strings.Lines(text) {
		if pid := number(line); pid > 0 { // that of a process outside of our namespace is 0
			_ = syscall.Kill(int(pid), syscall.SIGKILL)
		}
	}
	for _, folder := range g.folders {
		if err := g.tree.files.rmdir(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			left = true
		}
	}
	return left
}
