//go:build real || soak

// Package packages_test installs what `make packages` has made, each package by the
// tool that people use and into an empty place, and runs what is there then.
package packages_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

func TestMain(m *testing.M) { harness.Main(m, roles()...) }

// dist returns the path of the one file in dist/ that matches a pattern.
func dist(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(harness.Root(t), "dist", pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%d files in dist/ match %s, want one (%v): run 'make packages' first", len(found), pattern, err)
	}
	return found[0]
}

// version returns what the file VERSION says.
func version(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(harness.Root(t), "VERSION"))
	testkit.Must(t, err)
	return strings.TrimSpace(string(content))
}

// works holds an installed cabrank to what every package promises: it says its version,
// serves calls, and ends by the SIGTERM that a user or a supervisor sends to the process
// that he has started, with nothing left. command makes `cabrank ARGS…` as it is
// installed, with the folder and the environment of its own world.
func works(t *testing.T, command func(args ...string) *exec.Cmd) {
	t.Helper()
	said := harness.StartCommand(t, command("version"))
	if code, want := said.ExitCode(harness.Patience), "version: "+version(t)+"\n"; code != 0 || !strings.Contains(said.Output(), want) {
		t.Fatalf("cabrank version: exit code %d, want 0 and the line %q in\n%s%s", code, want, said.Output(), said.Log())
	}

	once := harness.StartCommand(t, command("demo", "--once"))
	if code := once.ExitCode(harness.Patience); code != 0 {
		t.Errorf("cabrank demo --once: exit code %d\n%s", code, once.Output())
	}
	once.WaitNoneLeft(harness.Patience)

	// It becomes `cabrank run` over three workers.
	demo := harness.StartCommand(t, command("demo", "--listen", "127.0.0.1:0", "--metrics", "off", "--probes", "off"))
	cabrank := harness.Cabrank{Process: demo}
	addr := cabrank.Listening("listening")
	call := harness.StartCommand(t, command("demo", "call", "--addr", addr, "-n", "1"))
	if code := call.ExitCode(harness.Patience); code != 0 {
		t.Errorf("cabrank demo call: exit code %d\n%s", code, call.Output())
	}
	demo.Signal(syscall.SIGTERM)
	if code := demo.ExitCode(harness.StopBound); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	demo.WaitNoneLeft(harness.Patience)
	if conn, err := net.Dial("tcp", addr); err == nil {
		conn.Close()
		t.Errorf("something still listens at %s", addr)
	}
}
