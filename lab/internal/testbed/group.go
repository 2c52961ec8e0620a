package testbed

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cabrank/cabrank/internal/cgroup"
)

// Group is a control group.
type Group struct {
	Cores float64 // its quota, 0 for none

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

// Enter is what is put before a command that is to run in the group. It becomes the command.
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

// prefix is how our folders begin; the process follows that has made them, and what
// keeps several of one process apart.
const prefix = "cabrank-lab-"

// period is what a quota is for, as Kubernetes has it: 100 ms.
const period = 100 * time.Millisecond

// Tree is a place for control groups.
//
// Life: OpenGroups; ended by Close. Concurrency: one goroutine makes and ends groups; what is
// read of them may be read by any.
type Tree struct {
	files files
	v2    bool
	// folders are ours: for the controller cpu, and in version 1 for cpuacct, which counts,
	// if it is mounted elsewhere.
	folders []string
	made    []*Group
}

// first is how much more the groups weigh together than others on the machine, who would
// disturb what is measured.
const first = 100

// OpenGroups finds a place where this process may make groups with a quota of CPU.
//
// Errors: one line that says why there is none, and what to do.
func OpenGroups() (*Tree, error) {
	t, err := openGroups(os.DirFS("/"), machine{}, os.Getpid())
	if err == nil {
		_ = t.weigh(t.folders[0], first) // without it blocks are marked more often
	}
	return t, err
}

func openGroups(root fs.FS, on files, pid int) (*Tree, error) {
	t := &Tree{files: on}
	above := cgroup.Own(root, "cpu")
	if len(above) == 0 {
		return nil, errors.New("this machine has no control groups for CPU")
	}
	t.v2 = above[0].V2
	name := fmt.Sprintf("%s%d-%s", prefix, pid, strings.ToLower(rand.Text()[:6]))
	if t.v2 {
		if err := t.openV2(above, name); err != nil {
			return nil, err
		}
		return t, nil
	}
	cpu := path.Join(above[0].Path, name)
	if err := t.mkdir(cpu); err != nil {
		return nil, t.refused(err)
	}
	t.folders = []string{cpu}
	if acct := cgroup.Own(root, "cpuacct"); len(acct) > 0 && !acct[0].V2 {
		if count := path.Join(acct[0].Path, name); count != cpu && t.mkdir(count) == nil {
			t.folders = append(t.folders, count)
		}
	}
	return t, nil
}

// openV2 takes the lowest group of those that this process is in where others with a
// quota can be made: where that is so already, or can be had. A group with processes in
// it cannot (cgroup-v2.rst, no internal processes), but the one above may.
func (t *Tree) openV2(above []cgroup.Place, name string) error {
	var why error
	try := func(p cgroup.Place) bool {
		folder := path.Join(p.Path, name)
		if why = t.mkdir(folder); why != nil {
			return false
		}
		if why = t.files.write(path.Join(folder, "cgroup.subtree_control"), "+cpu"); why != nil {
			_ = t.files.rmdir(folder)
		}
		t.folders = []string{folder}
		return why == nil
	}
	for _, p := range above {
		text, err := t.files.read(path.Join(p.Path, "cgroup.subtree_control"))
		if err == nil && slices.Contains(strings.Fields(text), "cpu") && try(p) {
			return nil
		}
	}
	for _, p := range above {
		why = t.files.write(path.Join(p.Path, "cgroup.subtree_control"), "+cpu")
		if why == nil && try(p) {
			return nil
		}
	}
	return t.refused(why)
}

func (t *Tree) refused(why error) error {
	advice := "run it as root"
	if t.v2 {
		advice += ", or behind `systemd-run --user --scope -p Delegate=yes`"
	}
	return fmt.Errorf("no control group can be made here (%w): %s", why, advice)
}

// mkdir makes our folder, when those of the dead are removed.
func (t *Tree) mkdir(dir string) error {
	above := path.Dir(dir)
	names, _ := t.files.list(above) // without it they stay
	for _, name := range names {
		if ofTheDead(name) {
			t.remove(path.Join(above, name))
		}
	}
	return t.files.mkdir(dir)
}

// TempFolder makes a folder for the files of a run, when those of the dead are removed.
func TempFolder() (string, error) {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, folder := range left {
		if ofTheDead(filepath.Base(folder)) {
			_ = os.RemoveAll(folder) // it is ours, or it stays
		}
	}
	return os.MkdirTemp("", fmt.Sprintf("%s%d-", prefix, os.Getpid()))
}

// ofTheDead reports whether a folder was made by a lab that has ended.
func ofTheDead(name string) bool {
	rest, ours := strings.CutPrefix(name, prefix)
	number, _, _ := strings.Cut(rest, "-")
	pid, err := strconv.Atoi(number)
	return ours && err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// remove removes a folder with those in it, if no process is there.
func (t *Tree) remove(dir string) {
	names, _ := t.files.list(dir)
	for _, name := range names {
		_ = t.files.rmdir(path.Join(dir, name))
	}
	_ = t.files.rmdir(dir)
}

// removeTime bounds how long the kernel may take until a group is empty.
const removeTime = 2 * time.Second

// Close ends what still runs in the groups, and removes them.
func (t *Tree) Close() {
	for began := time.Now(); slices.ContainsFunc(t.made, (*Group).end) && time.Since(began) < removeTime; {
		time.Sleep(10 * time.Millisecond)
	}
	for _, folder := range t.folders {
		t.remove(folder)
	}
}

// files is what is done with the file system of control groups; tests have one that
// answers as the kernel does.
type files interface {
	read(name string) (string, error)
	write(name, text string) error
	list(dir string) ([]string, error) // names of folders
	mkdir(dir string) error
	rmdir(dir string) error
}

type machine struct{}

func (machine) read(name string) (string, error) {
	text, err := os.ReadFile(name)
	return string(text), err
}

// write writes a file that is there: the kernel makes them with the folder.
func (machine) write(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func (machine) list(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, filepath.Base(e.Name()))
		}
	}
	return names, err
}

func (machine) mkdir(dir string) error { return os.Mkdir(dir, 0o755) }
func (machine) rmdir(dir string) error { return os.Remove(dir) }
