//go:build real || soak

package packages_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

const (
	machineRole = "machine" // see runMachine
	home        = "/home/you"
	shop        = home + "/shop"
	hostRoot    = "/mnt/host"          // root of this machine, for the stand-in of docker
	standIns    = "/opt/cabrank-tests" // the test binary, which the stand-ins are
	state       = "/var/lib/cabrank-tests"
)

// machine is a Linux of its own for one example: the files of this one, where what is
// written is gone with the machine; processes, ports and a loopback interface of its own,
// and no other network.
type machine struct {
	t     *testing.T
	plan  machinePlan
	first *exec.Cmd // process 1 there
	life  io.Closer // its stdin: the machine ends when it is closed
}

// machinePlan is what process 1 of a machine is told.
type machinePlan struct {
	Base     string            `json:"base"`     // empty folder of this machine to build it in
	Packages []string          `json:"packages"` // files of dist/ for the folder of the service
	Shown    map[string]string `json:"shown"`    // folders of this machine, by their path there
	Python   string            `json:"python"`   // the one that the Python packages are for
	Cgroup   string            `json:"cgroup"`   // name of its own, if it has systemd
}

// startMachine returns one whose user has some packages in the folder of his service.
func startMachine(t *testing.T, packages []string) *machine {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("containers and packages of Debian need root, as in `make test`")
	}
	m := &machine{t: t, plan: planMachine(t, packages)}
	m.boot(machineRole, func(said string) bool { return strings.Contains(said, "ready") })
	return m
}

// boot starts process 1, which builds the machine, and waits until that is ready.
func (m *machine) boot(role string, ready func(said string) bool) {
	m.t.Helper()
	plan, err := json.Marshal(m.plan)
	testkit.Must(m.t, err)
	m.first = exec.Command(harness.OwnBinary(m.t), role, string(plan))
	m.first.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
	var said testkit.Buffer
	m.first.Stdout, m.first.Stderr = &said, &said
	if m.life, err = m.first.StdinPipe(); err == nil {
		err = m.first.Start()
	}
	testkit.Need(m.t, err == nil, "start a machine: %v", err)
	if role == systemdRole {
		m.life = systemdLife{m.first, m.plan.Cgroup}
	}
	m.t.Cleanup(m.end)
	defer func() {
		if m.t.Failed() {
			m.t.Logf("process 1 says:\n%s", said.String())
		}
	}()
	testkit.Eventually(m.t, harness.Patience, "a machine", func() bool {
		if role == machineRole && harness.StateOf(m.first.Process.Pid) == 'Z' { // a thread that becomes systemd leaves one, too
			m.t.Fatal("a machine was not built")
		}
		return ready(said.String())
	})
}

func planMachine(t *testing.T, packages []string) machinePlan {
	t.Helper()
	root := harness.Root(t)
	venv := filepath.Dir(filepath.Dir(harness.Built(t, filepath.Join(root, ".deps", "python", "bin", "python3"), "scripts/install-deps.sh workers")))
	libraries, err := filepath.Glob(filepath.Join(venv, "lib", "python3*", "site-packages"))
	python, err2 := filepath.EvalSymlinks(filepath.Join(venv, "bin", "python3"))
	if err = errors.Join(err, err2); err != nil || len(libraries) != 1 {
		t.Fatalf("Python packages in %q, %v", libraries, err)
	}
	gems := t.TempDir() // to make a source takes a second
	if slices.ContainsFunc(packages, func(name string) bool { return strings.HasSuffix(name, ".gem") }) {
		gems = gemSource(t)
	}
	return machinePlan{
		Base: t.TempDir(), Packages: packages,
		Shown: map[string]string{
			"/opt/gems":            gems,                      // of which Bundler takes gems, whatever the source
			"/opt/python-packages": resolved(t, libraries[0]), // on PYTHONPATH: pip finds them installed
			"/node_modules":        resolved(t, filepath.Join(root, "examples", "node", "node_modules")),
			home + "/examples":     filepath.Join(root, "examples"),
		},
		Python: python,
	}
}

func resolved(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(path)
	testkit.Need(t, err == nil, "%v: run 'scripts/install-deps.sh workers' first", err)
	return path
}

// wantNothingLeft holds that of what was typed nothing runs any more but the shells.
func (m *machine) wantNothingLeft() {
	m.t.Helper()
	left := func() (pids []int) {
		spaces, _ := filepath.Glob("/proc/[0-9]*/ns/pid")
		own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", m.first.Process.Pid))
		testkit.Must(m.t, err)
		for _, space := range spaces {
			pid, _ := strconv.Atoi(strings.Split(space, "/")[2])
			if there, err := os.Readlink(space); err == nil && there == own && !m.ours(pid) && harness.Alive(pid) {
				pids = append(pids, pid)
			}
		}
		return pids
	}
	defer func() {
		if pids := left(); len(pids) > 0 {
			m.t.Errorf("still there: %s", harness.Describe(pids))
		}
	}()
	testkit.Eventually(m.t, harness.Patience, "the end of all that was started", func() bool { return len(left()) == 0 })
}

// ours tells process 1, the shells and what systemd runs of its own from what was started.
func (m *machine) ours(pid int) bool {
	cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	groups, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	systemds := m.plan.Cgroup != "" && strings.Contains(string(groups), m.plan.Cgroup) && !strings.Contains(string(groups), "/cabrank.service")
	return pid == m.first.Process.Pid || strings.Contains(string(cmdline), "\x00--norc\x00") || systemds
}

// end ends the machine, and everything on it with it.
func (m *machine) end() {
	if m.first.ProcessState == nil {
		m.life.Close()
		_ = m.first.Wait()
	}
}

// environment is that of a user who has just come, or of a base image.
func environment(path string) []string {
	return []string{
		"HOME=" + home, "PATH=" + path, "LANG=C.UTF-8", "TERM=xterm", "USER=root",
		"PYTHONPATH=/opt/python-packages", "PIP_NO_INDEX=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_ROOT_USER_ACTION=ignore",
		"npm_config_offline=true", "npm_config_update_notifier=false",
		"BUNDLE_MIRROR__ALL=file:///opt/gems", "BUNDLE_SILENCE_ROOT_WARNING=true",
	}
}

// command is one that runs on the machine, in the folder of the service.
func (m *machine) command(name string, args ...string) *exec.Cmd {
	line := []string{"--target", strconv.Itoa(m.first.Process.Pid), "--mount", "--pid", "--net", "--uts", "--ipc", "--root", "--wdns=" + shop, "env", "-i"}
	line = append(append(append(line, environment(m.plan.path())...), name), args...)
	return exec.Command("nsenter", line...)
}

// write puts a file on the machine. One that begins with #! can be executed.
func (m *machine) write(path, content string) {
	m.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(shop, path)
	}
	testkit.Must(m.t, writeFile(fmt.Sprintf("/proc/%d/root%s", m.first.Process.Pid, path), content))
}

func writeFile(path, content string) error {
	mode := os.FileMode(0o644)
	if strings.HasPrefix(content, "#!") {
		mode = 0o755
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), mode)
}

// runMachine is process 1 of a machine: it builds it, says "ready", and ends when its
// stdin does, and every process of the machine with it.
func runMachine(args []string) error {
	var plan machinePlan
	if err := json.Unmarshal([]byte(args[0]), &plan); err != nil {
		return err
	}
	if err := plan.build(mountSystem, standIn); err != nil {
		return err
	}
	orphans := make(chan os.Signal, 1)
	signal.Notify(orphans, syscall.SIGCHLD)
	go func() { // ends with the process
		for range orphans {
			for pid := 1; pid > 0; {
				pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			}
		}
	}()
	fmt.Fprintln(os.Stdout, "ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// build makes the machine that this process is the first of, and moves there. system
// gives a root the file systems of the kernel, and change makes it what it is to be.
func (p machinePlan) build(system, change func(root string) error) error {
	root := filepath.Join(p.Base, "root")
	return each(
		func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") },
		func() error { return mountNew("tmpfs", p.Base, "mode=755") },
		func() error { return mountLayers(root, []string{"/"}, filepath.Join(p.Base, "written")) },
		func() error { return system(root) },
		func() error { return mountNew("tmpfs", root+"/run", "mode=755") },
		func() error { return mountNew("tmpfs", root+state, "mode=755") },
		func() error { return p.show(root) },
		func() error { return p.furnish(root) },
		func() error { return change(root) },
		loopbackUp,
		func() error { return unix.Sethostname([]byte("host")) },
		func() error { return unix.Chroot(root) },
		func() error { return os.Chdir(shop) },
	)
}

// each takes steps, up to the first one that fails.
func each(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// show mounts what the machine needs of this one, to be read: it may lie on file systems
// of its own, which the copy of / does not have.
func (p machinePlan) show(root string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	shown := maps.Clone(p.Shown)
	shown[standIns], shown[hostRoot] = self, "/"
	for there, here := range shown {
		if err := mountBind(here, root+there); err != nil {
			return err
		}
	}
	return nil
}

// standIn writes the command that stands in for docker.
func standIn(root string) error {
	place := root + "/usr/local/bin/" + dockerRole
	return errors.Join(os.RemoveAll(place), writeFile(place, "#!/bin/sh\nexec unshare --mount "+standIns+" "+dockerRole+` "$@"`+"\n"))
}

// furnish writes what the user finds: packages, and Python. No policy keeps packages from
// starting services, as one does in many containers, and none has all manual pages of
// this machine indexed.
func (p machinePlan) furnish(root string) error {
	if err := errors.Join(os.RemoveAll(root+policy), os.RemoveAll(root+"/var/lib/man-db/auto-update")); err != nil {
		return err
	}
	if err := os.MkdirAll(root+shop, 0o755); err != nil {
		return err
	}
	for _, name := range p.Packages {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root+shop, filepath.Base(name)), content, 0o644); err != nil {
			return err
		}
	}
	if err := os.Symlink(p.Python, root+pythonLink); err != nil {
		return err
	}
	return enterable(root, p.path())
}

func (p machinePlan) path() string {
	return strings.Replace(standardPath, ":/usr/sbin", ":"+filepath.Dir(p.Python)+":/usr/sbin", 1)
}

// enterable lets every user reach the programs of a $PATH, some of which may be in the
// home of the one who has built Python.
func enterable(root, path string) error {
	for folder := range strings.SplitSeq(path, ":") {
		for ; folder != "/"; folder = filepath.Dir(folder) {
			info, err := os.Stat(root + folder)
			if err == nil && info.Mode().Perm()&0o5 != 0o5 {
				err = os.Chmod(root+folder, info.Mode().Perm()|0o055)
			}
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// mountSystem gives a root the file systems of the kernel, and an empty /tmp.
func mountSystem(root string) error {
	for _, name := range []string{"/dev", "/sys"} {
		if err := os.MkdirAll(root+name, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(name, root+name, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mount %s: %w", name, err)
		}
	}
	if err := mountNew("proc", root+"/proc", ""); err != nil {
		return err
	}
	return mountNew("tmpfs", root+"/tmp", "mode=1777")
}

func mountNew(kind, target, options string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(kind, target, kind, 0, options); err != nil {
		return fmt.Errorf("mount %s at %s: %w", kind, target, err)
	}
	return nil
}

// mountBind shows a file or folder at a second place, to be read there.
func mountBind(source, target string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.MkdirAll(target, 0o755)
	} else if _, missing := os.Stat(target); missing != nil {
		err = writeFile(target, "")
	}
	if err != nil {
		return err
	}
	err = unix.Mount(source, target, "", unix.MS_BIND, "")
	if err == nil {
		err = unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
	}
	if err != nil {
		return fmt.Errorf("mount %s at %s: %w", source, target, err)
	}
	return nil
}

// mountLayers lays folders over each other, the uppermost first. What is written goes to
// the folder written, or nowhere, if there is none.
func mountLayers(target string, layers []string, written string) error {
	empty := target + ".empty" // an overlay has two layers at least
	options := "lowerdir=" + strings.Join(append(slices.Clip(layers), empty), ":")
	folders := []string{target, empty}
	if written != "" {
		work := written + ".work"
		folders = append(folders, written, work)
		options += ",upperdir=" + written + ",workdir=" + work
	}
	for _, folder := range folders {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("overlay", target, "overlay", 0, options); err != nil {
		return fmt.Errorf("mount layers at %s: %w", target, err)
	}
	return nil
}

// loopbackUp makes 127.0.0.1 work.
// Source: netdevice(7), SIOCSIFFLAGS.
func loopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}
