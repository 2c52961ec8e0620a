//go:build real || soak

package packages_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	systemdRole = "systemd" // see runSystemd
	systemd     = "/lib/systemd/systemd"
	hierarchies = "/sys/fs/cgroup" // where those of cgroup version 1 are mounted
)

// startSystemd returns a machine whose process 1 is systemd.
func startSystemd(t *testing.T, packages ...string) debianHost {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("systemd as process 1 of namespaces needs root")
	}
	for _, needed := range []string{systemd, hierarchies + "/systemd/cgroup.procs"} {
		if _, err := os.Stat(needed); err != nil {
			t.Skipf("systemd as process 1 of namespaces cannot be had here: it needs cgroups of version 1 (%v)", err)
		}
	}
	m := &machine{t: t, plan: planMachine(t, packages)}
	m.plan.Cgroup = fmt.Sprint("cabrank-test-", os.Getpid())
	m.boot(systemdRole, func(string) bool {
		out, _ := m.command("systemctl", "is-system-running").Output() // no status 0 for a degraded one
		state := strings.TrimSpace(string(out))
		return state == "running" || state == "degraded"
	})
	return debianHost{m}
}

// systemdLife ends a machine with systemd, and removes its cgroups.
type systemdLife struct {
	first  *exec.Cmd
	cgroup string
}

func (l systemdLife) Close() error {
	err := l.first.Process.Kill() // and with it all of the machine
	_ = l.first.Wait()            // the cgroups are empty then
	return errors.Join(err, eachHierarchy(func(folder string) error { return removeCgroup(filepath.Join(folder, l.cgroup)) }))
}

// removeCgroup removes one with all below it. Their files go with them.
func removeCgroup(name string) error {
	var folders []string
	err := filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			folders = append([]string{path}, folders...)
		}
		return err
	})
	for _, folder := range folders {
		err = errors.Join(err, os.Remove(folder))
	}
	return err
}

// eachHierarchy does something with the cgroup of this process in every hierarchy where
// a process may make one for itself. That of cpuset has no CPUs for those.
func eachHierarchy(do func(folder string) error) error {
	content, err := os.ReadFile("/proc/self/cgroup") // cgroups(7): number:controllers:path
	for line := range strings.Lines(string(content)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		name := strings.TrimPrefix(fields[1], "name=")
		if name == "" {
			name = "unified" // version 2 beside those of version 1
		}
		folder := filepath.Join(hierarchies, name, fields[2])
		if _, missing := os.Stat(folder); missing == nil && name != "cpuset" {
			err = errors.Join(err, do(folder))
		}
	}
	return err
}

// runSystemd builds a machine and becomes its systemd.
func runSystemd(args []string) error {
	var plan machinePlan
	if err := json.Unmarshal([]byte(args[0]), &plan); err != nil {
		return err
	}
	err := eachHierarchy(func(folder string) error {
		own := filepath.Join(folder, plan.Cgroup)
		if err := os.Mkdir(own, 0o755); err != nil {
			return err
		}
		return os.WriteFile(own+"/cgroup.procs", []byte("0"), 0o644)
	})
	if err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := plan.build(mountBare, quieten); err != nil {
		return err
	}
	// This thread becomes the process, and ends with the test, whatever that does.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	return unix.Exec(systemd, []string{systemd, "--system", "--log-target=console", "--show-status=0"},
		[]string{"container=test", "PATH=" + standardPath})
}

// mountBare gives a root what systemd needs of the kernel, which makes the rest: devices
// of its own and the hierarchy by which it tells services apart.
func mountBare(root string) error {
	err := each(
		func() error { return mountNew("proc", root+"/proc", "") },
		func() error { return mountNew("sysfs", root+"/sys", "") },
		func() error { return mountNew("tmpfs", root+"/tmp", "mode=1777") },
		func() error { return mountNew("tmpfs", root+"/dev", "mode=755") },
		func() error { return mountNew("tmpfs", root+hierarchies, "mode=755") },
		func() error { return os.MkdirAll(root+hierarchies+"/systemd", 0o755) },
		func() error {
			return unix.Mount("cgroup", root+hierarchies+"/systemd", "cgroup", 0, "none,name=systemd")
		},
	)
	if err != nil {
		return err
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		file := root + "/dev/" + name
		if err := errors.Join(os.WriteFile(file, nil, 0o666), unix.Mount("/dev/"+name, file, "", unix.MS_BIND, "")); err != nil {
			return err
		}
	}
	return os.Symlink("/proc/self/fd", root+"/dev/fd")
}

// quieten has systemd start little beside what a test asks for.
func quieten(root string) error {
	own := root + "/etc/systemd/system/"
	if err := errors.Join(os.RemoveAll(own), os.MkdirAll(own, 0o755)); err != nil {
		return err
	}
	for _, name := range []string{"systemd-udevd", "systemd-udev-trigger", "systemd-networkd", "systemd-resolved", "systemd-timesyncd"} {
		if err := os.Symlink("/dev/null", own+name+".service"); err != nil {
			return err
		}
	}
	return os.Symlink("/lib/systemd/system/multi-user.target", own+"default.target")
}
