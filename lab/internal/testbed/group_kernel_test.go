package testbed

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing/fstest"
)

// kernel is a file system of control groups that answers as Linux does.
type kernel struct {
	v2      bool
	folders map[string]map[string]string // files by folder
	locked  []string                     // folders in which nothing may be changed
}

// addFolder makes a folder with the files of a group. allows are the controllers for
// those below it in version 2.
func (k *kernel) addFolder(dir, procs, allows string) {
	inside := map[string]string{"cgroup.procs": procs, "cpu.stat": "nr_periods 7\nnr_throttled 3\n"}
	switch {
	case k.v2 && strings.Contains(k.folders[path.Dir(dir)]["cgroup.subtree_control"], "cpu"), k.v2 && k.folders[path.Dir(dir)] == nil:
		inside["cpu.max"], inside["cpu.weight"] = "max 100000", "100"
		inside["cpu.stat"] += "usage_usec 2500\nthrottled_usec 1500\n"
		fallthrough
	case k.v2:
		inside["cgroup.subtree_control"] = allows
	case strings.Contains(dir, "cpuacct"):
		inside["cpuacct.usage"] = "2500000\n"
	default:
		inside["cpu.cfs_quota_us"], inside["cpu.cfs_period_us"], inside["cpu.shares"] = "-1", "100000", "1024"
		inside["cpu.stat"] += "throttled_time 1500000\n"
	}
	k.folders[dir] = inside
}

func (k *kernel) denied(dir string) error {
	if slices.Contains(k.locked, dir) {
		return &fs.PathError{Op: "open", Path: dir, Err: syscall.EACCES}
	}
	return nil
}

func (k *kernel) read(name string) (string, error) {
	text, there := k.folders[path.Dir(name)][path.Base(name)]
	if !there {
		return "", &fs.PathError{Op: "open", Path: name, Err: syscall.ENOENT}
	}
	return text, nil
}

func (k *kernel) write(name, text string) error {
	dir, file := path.Dir(name), path.Base(name)
	if _, err := k.read(name); err != nil {
		return err
	}
	if err := k.denied(dir); err != nil {
		return err
	}
	if file == "cgroup.subtree_control" {
		isRoot := k.folders[path.Dir(dir)] == nil
		if k.folders[dir]["cgroup.procs"] != "" && !isRoot {
			return &fs.PathError{Op: "write", Path: name, Err: syscall.EBUSY}
		}
		text = strings.TrimPrefix(text, "+")
	}
	k.folders[dir][file] = text
	return nil
}

func (k *kernel) list(dir string) (names []string, err error) {
	for name := range k.folders {
		if path.Dir(name) == dir {
			names = append(names, path.Base(name))
		}
	}
	return names, nil
}

func (k *kernel) mkdir(dir string) error {
	if err := k.denied(path.Dir(dir)); err != nil {
		return err
	}
	if k.folders[path.Dir(dir)] == nil {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOENT}
	}
	if k.folders[dir] != nil {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.EEXIST}
	}
	k.addFolder(dir, "", "")
	return nil
}

func (k *kernel) rmdir(dir string) error {
	if k.folders[dir] == nil {
		return &fs.PathError{Op: "rmdir", Path: dir, Err: syscall.ENOENT}
	}
	if below, _ := k.list(dir); len(below) > 0 || k.folders[dir]["cgroup.procs"] != "" {
		return &fs.PathError{Op: "rmdir", Path: dir, Err: syscall.EBUSY}
	}
	delete(k.folders, dir)
	return nil
}

// proc is the file system in which a process finds its groups.
func proc(mountinfo, groups string) fs.FS {
	return fstest.MapFS{
		"proc/self/mountinfo": {Data: []byte(mountinfo)},
		"proc/self/cgroup":    {Data: []byte(groups)},
	}
}
