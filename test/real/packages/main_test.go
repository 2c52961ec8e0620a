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
	harness.StartCommand(t, command("version")).WantExit(harness.Patience, 0, "version: "+version(t)+"\n")
	once := harness.StartCommand(t, command("demo", "--once"))
	once.WantExit(harness.Patience, 0)
	once.WaitNoneLeft(harness.Patience)

	// It becomes `cabrank run` over three workers.
	demo := harness.StartCommand(t, command("demo", "--listen", "127.0.0.1:0", "--metrics", "off", "--probes", "off"))
	cabrank := harness.Cabrank{Process: demo}
	addr := cabrank.Listening("listening")
	harness.StartCommand(t, command("demo", "call", "--addr", addr, "-n", "1")).WantExit(harness.Patience, 0)
	demo.StopBy(syscall.SIGTERM)
	if conn, err := net.Dial("tcp", addr); err == nil {
		conn.Close()
		t.Errorf("something still listens at %s", addr)
	}
}
