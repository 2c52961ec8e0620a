package testbed

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cabrank/cabrank/internal/cgroup"
)

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
		rest, ours := strings.CutPrefix(name, prefix)
		number, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(number)
		if ours && err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			t.remove(path.Join(above, name))
		}
	}
	return t.files.mkdir(dir)
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
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for began := time.Now(); slices.ContainsFunc(t.made, (*Group).end) && time.Since(began) < removeTime; {
		<-again.C
	}
	for _, folder := range t.folders {
		t.remove(folder)
	}
}
