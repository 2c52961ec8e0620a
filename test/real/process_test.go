//go:build real || soak

package real_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// markVariable is in the environment of every process that a test starts, with
// a value of its own. Children and grandchildren inherit it, also when they
// leave the group or lose their parent, so the whole family can be found.
const markVariable = "CABRANK_TEST_FAMILY"

// patience is how long a test waits for what should take well under a second:
// a start, a line in the log, an end. It only decides when a hang is a failure.
const patience = 20 * time.Second

// Process is a child of the test: a real program with its output collected.
//
// Life: made by StartProcess, ended by itself, Stop or Kill; at the end of the
// test whatever is left of its family is killed, and a test that failed shows
// the log. Concurrency: all methods may be called from any goroutine, except
// those that fail the test, which belong to the test's own.
type Process struct {
	PID int

	t       testing.TB
	name    string
	cmd     *exec.Cmd
	mark    string
	stdout  output
	stderr  output
	outputs []chan struct{} // each closed when one of them is read to its end
	exited  chan struct{}   // closed when the process has been waited for
}

// StartProcess starts a program, given by its path, with the arguments and the
// additional "NAME=value" environment, in the root of the tree.
func StartProcess(t testing.TB, env []string, path string, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, name: filepath.Base(path), mark: rand.Text(), exited: make(chan struct{})}
	p.cmd = exec.Command(path, args...)
	p.cmd.Dir = root(t)
	p.cmd.Env = append(os.Environ(), append(env, markVariable+"="+p.mark)...)
	stdout, stderr := p.collect(&p.stdout), p.collect(&p.stderr)
	p.cmd.Stdout, p.cmd.Stderr = stdout, stderr
	t.Cleanup(p.cleanup)
	err := p.cmd.Start()
	stdout.Close()
	stderr.Close()
	if err != nil {
		close(p.exited)
		t.Fatalf("start %s: %v", p.name, err)
	}
	p.PID = p.cmd.Process.Pid
	go func() { // ends with the process, which cleanup ends
		_ = p.cmd.Wait()
		p.awaitOutput(outputDelay)
		close(p.exited)
	}()
	return p
}

// outputDelay is how long the output of a process is waited for after its end.
// Who holds its pipes for longer, a grandchild or a successor, is read on.
const outputDelay = time.Second

// collect makes a pipe for an output of the process and reads it until all who
// have its other end, which it returns, are gone.
func (p *Process) collect(into *output) *os.File {
	p.t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	read := make(chan struct{})
	p.outputs = append(p.outputs, read)
	go func() { // cleanup ends all writers
		defer close(read)
		defer reader.Close()
		_, _ = io.Copy(into, reader)
	}()
	return writer
}

// awaitOutput waits until all of the output is read, but not for ever.
func (p *Process) awaitOutput(within time.Duration) {
	enough := time.After(within)
	for _, read := range p.outputs {
		select {
		case <-read:
		case <-enough:
			return
		}
	}
}

// Log returns what the process has written to stderr so far.
func (p *Process) Log() string { return p.stderr.String() }

// Output returns what the process has written to stdout so far.
func (p *Process) Output() string { return p.stdout.String() }

// Signal sends a signal to the process alone, not to its children.
func (p *Process) Signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("signal %v to %s: %v", sig, p.name, err)
	}
}

// Exited reports whether the process has ended.
func (p *Process) Exited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// ExitCode waits for the end of the process and returns its exit code, -1 if a
// signal ended it. The test fails if it has not ended within the given time.
func (p *Process) ExitCode(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(within):
		p.t.Fatalf("%s (pid %d) has not ended within %v", p.name, p.PID, within)
	}
	return p.cmd.ProcessState.ExitCode()
}

// WaitLog waits until a line of stderr contains text and returns that line.
func (p *Process) WaitLog(within time.Duration, text string) string {
	p.t.Helper()
	var line string
	p.wait(within, fmt.Sprintf("a line with %q from %s", text, p.name), func() bool {
		line = lineWith(p.Log(), text)
		return line != ""
	})
	return line
}

// wait is testkit.Eventually that fails at once when the process has ended.
func (p *Process) wait(within time.Duration, what string, done func() bool) {
	p.t.Helper()
	testkit.Eventually(p.t, within, what, func() bool {
		ended := p.Exited() // before done, which may see what was written last
		if done() {
			return true
		}
		if ended {
			p.t.Fatalf("%s ended (%v) while the test waited for: %s", p.name, p.cmd.ProcessState, what)
		}
		return false
	})
}

// Kill ends the process by SIGKILL and waits for its end. Its children are not
// touched: WaitNoneLeft says what became of them.
func (p *Process) Kill() {
	p.t.Helper()
	p.Signal(syscall.SIGKILL)
	p.ExitCode(patience)
}

// WaitNoneLeft waits until no process of the family is left: neither this one
// nor anything that it or its children started.
func (p *Process) WaitNoneLeft(within time.Duration) {
	p.t.Helper()
	var left []int
	deadline := time.Now().Add(within)
	for pause := time.NewTicker(10 * time.Millisecond); ; <-pause.C {
		if left = family(p.mark); len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%v after the end of %s still there: %s", within, p.name, describe(left))
		}
	}
}

// Family returns the pids of the process and of all that it or its children
// started and that still run, in no order. It needs /proc: elsewhere than on
// Linux it is empty.
func (p *Process) Family() []int { return family(p.mark) }

// cleanup leaves nothing behind, whatever the test has done.
func (p *Process) cleanup() {
	if p.cmd.Process != nil {
		_ = p.cmd.Process.Kill()
	}
	<-p.exited
	for _, pid := range family(p.mark) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	p.awaitOutput(patience)
	if p.t.Failed() {
		p.t.Logf("stderr of %s (pid %d):\n%s", p.name, p.PID, tail(p.Log(), 200))
	}
}

// family finds the running processes with a mark in their environment. A
// zombie has none, so it does not count.
func family(mark string) []int {
	entries, _ := filepath.Glob("/proc/[0-9]*/environ")
	var pids []int
	for _, entry := range entries {
		environ, err := os.ReadFile(entry)
		if err != nil || !bytes.Contains(environ, []byte(markVariable+"="+mark)) {
			continue // another user's, or gone meanwhile
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(entry)))
		if err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func describe(pids []int) string {
	var all []string
	for _, pid := range pids {
		cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		all = append(all, fmt.Sprintf("%d (%s)", pid, strings.TrimSpace(string(bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})))))
	}
	return strings.Join(all, ", ")
}

// lineWith returns the first whole line that contains text, or nothing.
func lineWith(log, text string) string {
	for line := range strings.Lines(log) {
		if strings.HasSuffix(line, "\n") && strings.Contains(line, text) {
			return strings.TrimSuffix(line, "\n")
		}
	}
	return ""
}

// tail returns the last n lines of a text.
func tail(text string, n int) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "")
}

// output collects what a process writes while the test reads it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// root is the root of the tree.
func root(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// tool returns the path of a tool that the Makefile builds into .tools.
func tool(t testing.TB, name string) string {
	t.Helper()
	return built(t, filepath.Join(root(t), ".tools", name), "make tools")
}

// built returns path if there is such a file; the test fails otherwise, for
// it must not pass without having run.
func built(t testing.TB, path, command string) string {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run '%s' first", err, command)
	}
	return path
}

// shortTempDir is t.TempDir with a path short enough for a socket in it.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cabrank-real-") //nolint:usetesting // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// freePorts returns the first of n ports in a row that were free just now, out
// of the range from which the system gives none by itself.
func freePorts(t *testing.T, n int) int {
	t.Helper()
	for first := 20000; first < 30000; first += n {
		free := true
		for port := first; port < first+n && free; port++ {
			listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
			if free = err == nil; free {
				listener.Close()
			}
		}
		if free {
			return first
		}
	}
	t.Fatal("no free ports")
	return 0
}
