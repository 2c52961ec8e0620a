//go:build real || soak

// Package packages_test installs what `make packages` has made, each package by the
// tool that people use and into an empty place, and runs what is there then.
package packages_test

import (
	"fmt"
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
	testkit.Need(t, err == nil && len(found) == 1,
		"%d files in dist/ match %s, want one (%v): run 'make packages' first", len(found), pattern, err)
	return found[0]
}

// version returns what the file VERSION says.
func version(t *testing.T) string {
	t.Helper()
	content := testkit.ReadFile(t, filepath.Join(harness.Root(t), "VERSION"))
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

// place is a folder that is home to an installer of packages, with the variables that
// commands have there. Nothing of the user who runs the test is known in it.
type place struct {
	t   *testing.T
	dir string
	env []string
}

// in is the same place for commands that run in a folder of it.
func (p place) in(folder string) place {
	p.dir = filepath.Join(p.dir, folder)
	return p
}

// command is a command line in the place, found by its PATH.
func (p place) command(line ...string) *exec.Cmd {
	cmd := exec.Command("/usr/bin/env", line...)
	cmd.Dir, cmd.Env = p.dir, p.env
	return cmd
}

// run runs a command to its end, which has to be a good one, and returns its output.
func (p place) run(line ...string) string {
	p.t.Helper()
	return must(p.t, p.command(line...))
}

// must runs a command to its end and returns what it has printed.
func must(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	testkit.Need(t, err == nil, "%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	return string(out)
}

// startRun starts an installed `cabrank run` over one worker and waits until it listens.
func startRun(t *testing.T, command func(args ...string) *exec.Cmd, worker ...string) *harness.Cabrank {
	t.Helper()
	cmd := command(append([]string{
		"run", "--listen", "127.0.0.1:0", "--probes", "off", "--metrics", "off", "--control", "off",
		"--transport", "unix", "--workers", "1", "--",
	}, worker...)...)
	c := &harness.Cabrank{Process: harness.StartCommand(t, cmd), Ended: true}
	c.Addr = c.Listening("listening")
	return c
}

// serves holds an installed cabrank to a call that its worker answers, and to
// its end by SIGTERM. The process that was started must be the program, if that is given.
func serves(t *testing.T, program string, command func(args ...string) *exec.Cmd, worker ...string) {
	t.Helper()
	c := startRun(t, command, worker...)
	harness.CallIo(t.Context(), harness.Dial(t, c.Addr), "1", 0).WantOK(t)
	if got, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", c.PID)); program != "" && (err != nil || got != program) {
		t.Errorf("the process is %s (%v), want %s", got, err, program)
	}
	c.Stop()
}

// wantLine holds that a command ends at once, because nothing could be started, with one
// line that contains some words.
func wantLine(t *testing.T, cmd *exec.Cmd, words ...string) {
	t.Helper()
	p := harness.StartCommand(t, cmd)
	p.WantExit(harness.Patience, 2)
	wantWords(t, p.Log()+p.Output(), append(words, "cabrank: ")...)
}

func wantWords(t *testing.T, line string, words ...string) {
	t.Helper()
	testkit.Want(t, strings.Count(line, "\n") == 1, "want one line, got\n%s", line)
	for _, word := range words {
		testkit.Says(t, line, word)
	}
}
