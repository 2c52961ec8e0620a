//go:build real || soak

package packages_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// nodeProject is a folder with a package.json, in a home of its own.
type nodeProject struct{ place }

func newNodeProject(t *testing.T) *nodeProject {
	t.Helper()
	n := &nodeProject{place{t: t, dir: filepath.Join(harness.ShortTempDir(t), "my shop")}}
	node, err := exec.LookPath("node")
	testkit.Need(t, err == nil, "%v: run 'scripts/install-deps.sh workers' first", err)
	n.env = []string{
		"HOME=" + n.dir, "PATH=" + filepath.Join(n.dir, "node_modules", ".bin") + ":" + filepath.Dir(node) + ":/usr/bin:/bin",
		"npm_config_offline=true", "npm_config_audit=false", "npm_config_fund=false", "npm_config_update_notifier=false",
	}
	err = os.Mkdir(n.dir, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(n.dir, "package.json"), []byte(`{"name": "shop", "private": true}`), 0o600)
	}
	testkit.Must(t, err)
	return n
}

// program is where this platform's is installed.
func (n *nodeProject) program() string {
	return filepath.Join(n.dir, "node_modules", "@cabrank", npmPlatform(), "bin", "cabrank")
}

// npmPlatform is this platform as Node names it.
func npmPlatform() string {
	return runtime.GOOS + "-" + map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
}

// npmFiles are the packages that people install here: the one that they name, and the one
// that it brings.
func npmFiles(t *testing.T) (cabrank, program string) {
	t.Helper()
	return dist(t, "cabrank-"+version(t)+".tgz"), dist(t, "cabrank-"+npmPlatform()+"-*.tgz")
}

// The npm package in a new project: the command becomes the program, and the module knows
// its path, also for import. Uninstalled it leaves nothing.
func TestNPM(t *testing.T) {
	n := newNodeProject(t)
	cabrank, program := npmFiles(t)
	n.run("npm", "install", cabrank, program)
	for _, line := range [][]string{
		{"node", "-p", `require("cabrank").path()`},
		{"node", "--input-type=module", "-e", `import { path } from "cabrank"; console.log(path())`},
	} {
		testkit.Equal(t, strings.TrimSpace(n.run(line...)), n.program(), "%s prints", line)
	}
	t.Run("command", func(t *testing.T) {
		command := n.starting("cabrank")
		works(t, command)
		serves(t, n.program(), command, "node", filepath.Join(harness.Root(t), "examples", "node", "worker.js"))
	})
	// SIGTERM to npm, which a supervisor sends, ends a script that begins with exec.
	t.Run("npm start", func(t *testing.T) {
		n.run("npm", "pkg", "set", "scripts.start=exec cabrank")
		serves(t, "", n.starting("npm", "start", "--"), harness.FaultWorker(t)...)
	})
	t.Run("by Node", func(t *testing.T) { byNode(t, n.starting("node", "node_modules/.bin/cabrank")) })
	n.run("npm", "uninstall", "cabrank", "@cabrank/"+npmPlatform())
	left := named(t, filepath.Join(n.dir, "node_modules"))
	testkit.Want(t, len(left) == 0, "npm uninstall has left %q", left)
}

// starting makes command lines that begin with the same words.
func (n *nodeProject) starting(words ...string) func(args ...string) *exec.Cmd {
	return func(args ...string) *exec.Cmd { return n.command(slices.Concat(words, args)...) }
}

// byNode holds that Node, where it runs the command, as Yarn has it do, stays before the
// program, passes signals on, and ends as that does.
func byNode(t *testing.T, command func(args ...string) *exec.Cmd) {
	t.Helper()
	works(t, command)
	wantLine(t, command("nonsense"), `unknown command "nonsense"`)

	c := startRun(t, command, harness.FaultWorker(t)...)
	c.WaitWorkers(1)
	c.Signal(syscall.SIGUSR1) // which otherwise begins a debugger
	c.Signal(syscall.SIGHUP)
	c.WaitLog(harness.Patience, "workers replaced")
	testkit.Want(t, !strings.Contains(c.Log(), "Debugger"), "Node has begun a debugger:\n%s", c.Log())
	c.Stop()

	killed := startRun(t, command, harness.FaultWorker(t)...)
	killed.WaitWorkers(1)
	for _, pid := range killed.Family() {
		if parent(pid) == killed.PID {
			killed.KillPID(pid)
		}
	}
	killed.ExitCode(harness.Patience)
	testkit.Want(t, killed.Cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL,
		"ended with %v, want the signal that has ended the program", killed.Cmd.ProcessState)
	killed.WaitNoneLeft(harness.Patience)
}

// parent is the process that has started another one, or 0.
func parent(pid int) (parent int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, _ = fmt.Sscanf(harness.LineWith(string(status), "PPid:"), "PPid: %d", &parent)
	return parent
}

// Without the program of this platform there is one line: when optional dependencies were
// left out, and when node_modules was copied from another platform.
func TestNPMWithoutTheProgram(t *testing.T) {
	n := newNodeProject(t)
	cabrank, _ := npmFiles(t)
	n.run("npm", "install", "--omit=optional", cabrank)
	missing := "the package @cabrank/" + npmPlatform() + " is missing"
	wantLine(t, n.command("cabrank", "version"), missing, "--include=optional")
	n.run("npm", "install", "--force", dist(t, "cabrank-darwin-arm64-*.tgz"))
	wantLine(t, n.command("cabrank", "version"), missing)
}

// Each npm package has the files, with the modes, that `npm pack` would pack of them.
func TestNPMPack(t *testing.T) {
	n := newNodeProject(t)
	for _, name := range []string{"cabrank-" + version(t), "cabrank-darwin-arm64-*"} {
		dir := t.TempDir()
		must(t, exec.Command("tar", "-xzf", dist(t, name+".tgz"), "-C", dir))
		var packed []struct {
			Files []struct {
				Path string      `json:"path"`
				Mode fs.FileMode `json:"mode"`
			} `json:"files"`
		}
		cmd := n.command("npm", "pack", "--dry-run", "--json", filepath.Join(dir, "package"))
		out, err := cmd.Output()
		testkit.Need(t, err == nil, "npm pack: %v", err)
		err = json.Unmarshal(out, &packed)
		testkit.Need(t, err == nil && len(packed) == 1, "npm pack: %v: %s", err, out)
		theirs, ours := map[string]fs.FileMode{}, map[string]fs.FileMode{}
		for _, f := range packed[0].Files {
			theirs[f.Path] = f.Mode
		}
		err = fs.WalkDir(os.DirFS(filepath.Join(dir, "package")), ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			info, err := entry.Info()
			ours[path] = info.Mode().Perm()
			return err
		})
		testkit.Must(t, err)
		testkit.Want(t, maps.Equal(ours, theirs), "%s has %v, npm would pack %v", name, ours, theirs)
	}
}
