//go:build real || soak

package packages_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// venv is a virtual environment of Python, in a home of its own.
type venv struct{ place }

// newVenv makes one, of the Python whose packages the examples have.
func newVenv(t *testing.T) *venv {
	t.Helper()
	example := filepath.Join(harness.Root(t), ".deps", "python", "bin", "python3")
	python, err := filepath.EvalSymlinks(harness.Built(t, example, "scripts/install-deps.sh workers"))
	testkit.Must(t, err)
	v := &venv{place{t: t, dir: harness.ShortTempDir(t)}}
	v.env = []string{
		"HOME=" + v.dir, "PATH=" + filepath.Join(v.dir, "bin") + ":/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1",
		"PIP_NO_INDEX=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_ROOT_USER_ACTION=ignore",
	}
	v.run(python, "-m", "venv", v.dir)
	return v
}

// packages is the folder of the installed packages.
func (v *venv) packages() string {
	v.t.Helper()
	found, err := filepath.Glob(filepath.Join(v.dir, "lib", "python3*", "site-packages"))
	testkit.Need(v.t, err == nil && len(found) == 1, "site-packages: %q, %v", found, err)
	return found[0]
}

// lend has the environment see the packages of another one, behind its own.
func (v *venv) lend() {
	v.t.Helper()
	others, err := filepath.Glob(filepath.Join(harness.Root(v.t), ".deps", "python", "lib", "python3*", "site-packages"))
	if err == nil {
		err = os.WriteFile(filepath.Join(v.packages(), "lent.pth"), []byte(strings.Join(others, "\n")+"\n"), 0o600)
	}
	testkit.Must(v.t, err)
}

// named lists the files of a folder with cabrank in their path there.
func named(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.Contains(strings.TrimPrefix(path, dir), "cabrank") {
			all = append(all, path)
		}
		return err
	})
	testkit.Must(t, err)
	return all
}

// thisWheel is the wheel of this platform.
func thisWheel(t *testing.T) string {
	t.Helper()
	return dist(t, "cabrank-*-py3-none-manylinux*_"+map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]+".whl")
}

// The wheel, installed by pip into a virtual environment: the command is the program, and
// what `python -m cabrank` starts becomes it. Uninstalled it leaves nothing. The module
// finds the program elsewhere, too.
func TestWheel(t *testing.T) {
	v := newVenv(t)
	v.run("pip", "install", thisWheel(t))
	v.run("pip", "check")
	program := filepath.Join(v.dir, "bin", "cabrank")
	testkit.Equal(t, v.run("python3", "-c", "import cabrank; print(cabrank.path())"), program+"\n", "cabrank.path()")
	v.lend()
	worker := []string{"python3", filepath.Join(harness.Root(t), "examples", "python", "worker.py")}
	for name, start := range map[string][]string{"command": {"cabrank"}, "module": {"python3", "-m", "cabrank"}} {
		t.Run(name, func(t *testing.T) {
			command := func(args ...string) *exec.Cmd { return v.command(slices.Concat(start, args)...) }
			works(t, command)
			serves(t, program, command, worker...)
		})
	}
	v.run("pip", "uninstall", "--yes", "cabrank")
	left := named(t, v.dir)
	testkit.Want(t, len(left) == 0, "pip uninstall has left %q", left)
	t.Run("--target", func(t *testing.T) { v.elsewhere(t, "--target", "") })
	t.Run("--prefix", func(t *testing.T) { v.elsewhere(t, "--prefix", strings.TrimPrefix(v.packages(), v.dir)) })
}

// elsewhere installs the wheel with an option of pip into a folder that has its packages
// below a path, and holds that the module finds the program there, or says where it is not.
func (v *venv) elsewhere(t *testing.T, option, packages string) {
	t.Helper()
	dir := filepath.Join(v.dir, "elsewhere"+option)
	v.run("pip", "install", option, dir, thisWheel(t))
	program := filepath.Join(dir, "bin", "cabrank")
	module := func(args ...string) *exec.Cmd {
		cmd := v.command(append([]string{"python3", "-m", "cabrank"}, args...)...)
		cmd.Env = append(cmd.Env, "PYTHONPATH="+filepath.Join(dir, packages))
		return cmd
	}
	serves(t, program, module, harness.FaultWorker(t)...)

	if err := os.WriteFile(program, []byte("\x7fELF"), 0o700); err != nil { // of another machine, say
		t.Fatal(err)
	}
	wantLine(t, module("version"), program, "Exec format error")
	testkit.Must(t, os.Remove(program))
	wantLine(t, module("version"), program, "install the package again")
}
