//go:build real || soak

package packages_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

const (
	debianConfig = "/etc/cabrank/cabrank.yml" // the file of the administrator
	policy       = "/usr/sbin/policy-rc.d"    // what tells packages to leave services alone
)

// debianPackage is that of this platform.
func debianPackage(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("dpkg needs root, as in `make test`")
	}
	return dist(t, "cabrank_*_"+runtime.GOARCH+".deb")
}

// nextDebian makes the package of a version that comes later, with a configuration that
// says something else.
func nextDebian(t *testing.T, name string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "next")
	must(t, exec.Command("dpkg-deb", "--raw-extract", name, folder))
	replaceIn(t, filepath.Join(folder, "DEBIAN", "control"), "\nVersion: "+version(t), "\nVersion: "+version(t)+"+next")
	replaceIn(t, filepath.Join(folder, debianConfig), "# Cabrank as a service", "# Cabrank, newer, as a service")
	next := filepath.Join(t.TempDir(), "cabrank_next.deb")
	must(t, exec.Command("dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", folder, next))
	return next
}

func replaceIn(t *testing.T, name, old, now string) {
	t.Helper()
	content := testkit.ReadFile(t, name)
	testkit.Need(t, strings.Contains(string(content), old), "%s has no %q:\n%s", name, old, content)
	testkit.Must(t, os.WriteFile(name, []byte(strings.ReplaceAll(string(content), old, now)), 0o644))
}

// debianRoot is a folder that dpkg takes for a Debian: the package is installed there
// without a chroot, as when an image is built. Its scripts touch nothing else.
type debianRoot struct {
	t    *testing.T
	path string
}

func newDebianRoot(t *testing.T) debianRoot {
	t.Helper()
	r := debianRoot{t, t.TempDir()}
	for name, content := range map[string]string{
		"var/lib/dpkg/info/format":    "1\n",
		"var/lib/dpkg/updates/.keep":  "",
		"var/lib/dpkg/triggers/.keep": "",
		"var/lib/dpkg/status": `Package: adduser
Status: install ok installed
Architecture: all
Version: 3.134
Maintainer: none
Description: users and groups
`,
	} {
		testkit.Must(t, writeFile(filepath.Join(r.path, name), content))
	}
	return r
}

func (r debianRoot) dpkg(args ...string) {
	r.t.Helper()
	cmd := exec.Command("dpkg", append([]string{"--root=" + r.path, "--force-script-chrootless", "--force-unsafe-io", "--force-confdef"}, args...)...)
	cmd.Env = []string{"PATH=" + standardPath, "LANG=C.UTF-8"}
	must(r.t, cmd)
}

// files are those outside of dpkg's own folder, by their paths there.
func (r debianRoot) files() (names []string) {
	r.t.Helper()
	err := filepath.WalkDir(r.path, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name = strings.TrimPrefix(name, r.path)
			if !strings.HasPrefix(name, "/var/lib/dpkg/") {
				names = append(names, name)
			}
		}
		return err
	})
	testkit.Must(r.t, err)
	return names
}

// The package comes, is replaced and goes, and what the administrator has written stays
// until it is purged. Nothing but the user is left then.
func TestDebianRoot(t *testing.T) {
	name := debianPackage(t)
	r := newDebianRoot(t)
	r.dpkg("--install", name)
	works(t, func(args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(r.path, "usr", "bin", "cabrank"), args...)
		cmd.Dir, cmd.Env = r.path, []string{"PATH=" + standardPath}
		return cmd
	})
	_, gid, home, err := account(r.path, "cabrank")
	testkit.Want(t, err == nil && home == "/var/lib/cabrank", "the user has the home %q (%v)", home, err)
	config := filepath.Join(r.path, debianConfig)
	testkit.Equal(t, must(t, exec.Command("stat", "--format=%a %u %g", config)), fmt.Sprintf("640 0 %d\n", gid),
		"the configuration has mode, owner and group")

	replaceIn(t, config, "workers:\n", "workers:\n  count: 3\n")
	r.dpkg("--install", nextDebian(t, name))
	if content, err := os.ReadFile(config); err != nil || !strings.Contains(string(content), "  count: 3\n") {
		t.Errorf("after an upgrade the configuration is (%v)\n%s", err, content)
	}
	testkit.Equal(t, must(t, exec.Command("stat", "--format=%a %u %g", config)), fmt.Sprintf("640 0 %d\n", gid),
		"after an upgrade the configuration has mode, owner and group")

	r.dpkg("--remove", "cabrank")
	if files := r.files(); !slices.Contains(files, debianConfig) || slices.Contains(files, "/usr/bin/cabrank") {
		t.Errorf("after the removal there are %q", files)
	}
	r.dpkg("--purge", "cabrank")
	for _, file := range r.files() {
		testkit.Want(t, regexp.MustCompile(`^/etc/(passwd-?|g?shadow-?|group-?|\.pwd\.lock)$`).MatchString(file),
			"after the purge there is %s", file)
	}
}

// debianHost is a machine with systemd on which packages come and go.
type debianHost struct{ *machine }

func (h debianHost) run(line ...string) string {
	h.t.Helper()
	return must(h.t, h.command(line[0], line[1:]...))
}

func (h debianHost) dpkg(args ...string) string {
	h.t.Helper()
	return h.run(append([]string{"dpkg", "--no-triggers", "--force-unsafe-io", "--force-confdef"}, args...)...)
}

// main is the process that systemd holds for the main one, numbered as on the machine; 0:
// none.
func (h debianHost) main() (pid int) {
	h.t.Helper()
	_, err := fmt.Sscan(h.run("systemctl", "show", "--property=MainPID", "--value", "cabrank"), &pid)
	testkit.Must(h.t, err)
	return pid
}

// configure changes the configuration in place, as an editor does.
func (h debianHost) configure(old, now string) {
	h.t.Helper()
	replaceIn(h.t, fmt.Sprintf("/proc/%d/root%s", h.first.Process.Pid, debianConfig), old, now)
}

// load has the demo's workers called over one connection after the other, until enough
// is called. It ends by 0 if no call has failed.
func (h debianHost) load() (enough func()) {
	h.t.Helper()
	load := harness.StartCommand(h.t, h.command("sh", "-c",
		"until [ -e /tmp/enough ]; do cabrank demo call --calls 200 --concurrency 4 || exit; echo 200; done"))
	batches := func() int { return strings.Count(load.Output(), "\n200\n") }
	load.Wait(harness.Patience, "the first calls", func() bool { return batches() > 0 })
	return func() {
		h.t.Helper()
		seen := batches()
		load.Wait(harness.Patience, "more calls", func() bool { return batches() > seen })
		h.run("touch", "/tmp/enough")
		load.WantExit(harness.Patience, 0)
	}
}

// On a host the service stays off until it has been told what to run; then nothing but
// the configuration needs a change. A newer package takes over without a lost call, and
// where it may not, or cannot, the old one serves on. With the package the service goes.
func TestDebianService(t *testing.T) {
	name := debianPackage(t)
	next := nextDebian(t, name)
	h := startSystemd(t, name, next)
	h.dpkg("--install", filepath.Base(name))
	pid := h.main()
	testkit.Need(t, pid == 0, "without a command process %d runs", pid)
	if _, err := exec.LookPath("systemd-analyze"); err == nil {
		if said := h.run("systemd-analyze", "verify", "--man=no", "cabrank.service", "cabrank.socket"); strings.Contains(said, "cabrank") {
			t.Errorf("systemd-analyze verify: %s", said)
		}
	}
	h.configure(`  #command: [/usr/local/bin/worker, --listen, "{addr}"]`, "  command: [cabrank, demo, worker]")
	h.run("systemctl", "enable", "--now", "cabrank")

	first, enough := h.main(), h.load()
	said := h.dpkg("--install", filepath.Base(next))
	enough()
	second := h.main()
	testkit.Want(t, second != 0 && second != first,
		"after the upgrade of process %d there is process %d; dpkg said\n%s", first, second, said)

	h.write(policy, "#!/bin/sh\nexit 101\n")
	testkit.Says(t, h.dpkg("--install", filepath.Base(next)), "policy-rc.d forbids a hand-over")
	h.run("rm", policy)
	h.configure("workers:\n", "workers:\n  cuont: 3\n")
	said = h.dpkg("--install", filepath.Base(next))
	h.configure("  cuont: 3\n", "")
	testkit.Want(t, strings.Contains(said, "cuont") && strings.Contains(said, "To do without the hand-over"),
		"dpkg does not say why the old version goes on:\n%s", said)
	testkit.Equal(t, h.main(), second, "the process that serves")
	h.goes(next)
}

// goes removes the package, installs it again and purges it.
func (h debianHost) goes(name string) {
	h.t.Helper()
	h.dpkg("--remove", "cabrank")
	testkit.Equal(h.t, h.main(), 0, "after the removal there is process")
	h.dpkg("--install", filepath.Base(name))
	testkit.Want(h.t, h.main() != 0, "what was enabled does not run after the package has come back")
	h.dpkg("--purge", "cabrank")
	h.wantNothingLeft()
	for _, path := range []string{debianConfig, "/var/lib/cabrank", "/usr/lib/systemd/system/cabrank.service"} {
		testkit.Want(h.t, h.command("test", "-e", path).Run() != nil, "after the purge there is %s", path)
	}
}

// Where systemd does not make users adduser does.
func TestDebianWithoutSystemd(t *testing.T) {
	name := debianPackage(t)
	h := debianHost{startMachine(t, []string{name})}
	h.run("rm", "-f", "/usr/bin/systemd-sysusers")
	h.dpkg("--install", filepath.Base(name))
	testkit.Says(t, h.run("getent", "passwd", "cabrank"), ":/var/lib/cabrank:/usr/sbin/nologin")
}
