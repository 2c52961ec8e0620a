package harness

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// markVariable is in the environment of every process that a test starts, with
// a value of its own. Children and grandchildren inherit it, also when they
// leave the group or lose their parent, so the whole family can be found.
const markVariable = "CABRANK_TEST_FAMILY"

// Patience is how long a test waits for what should take well under a second:
// a start, a line in the log, an end. It only decides when a hang is a failure.
const Patience = time.Minute

// Process is a child of the test: a real program with its output collected.
//
// Life: made by StartProcess, ended by itself, Stop or Kill; at the end of the
// test whatever is left of its family is killed, and a test that failed shows
// the log. Concurrency: all methods may be called from any goroutine, except
// those that fail the test, which belong to the test's own.
type Process struct {
	PID int

	T       testing.TB
	Name    string
	Cmd     *exec.Cmd
	mark    string
	stdout  testkit.Buffer
	Stderr  testkit.Buffer
	outputs []chan struct{} // each closed when one of them is read to its end
	exited  chan struct{}   // closed when the process has been waited for
}

// StartProcess starts a program, given by its path, with the arguments and the
// additional "NAME=value" environment, in the root of the tree.
func StartProcess(t testing.TB, env []string, path string, args ...string) *Process {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Dir = Root(t)
	cmd.Env = append(os.Environ(), env...)
	return StartCommand(t, cmd)
}

// StartCLI starts a command of cabrank.
func StartCLI(t testing.TB, args ...string) *Process {
	t.Helper()
	return StartProcess(t, nil, CabrankBinary(t), args...)
}

// StartLine starts a command line.
func StartLine(t testing.TB, line ...string) *Process {
	t.Helper()
	return StartProcess(t, nil, line[0], line[1:]...)
}

// StartCommand starts a command in the folder, the environment and the session that it
// has. Its output is collected, unless it has a file for stdout: that becomes stdout and
// stderr, and is closed here.
func StartCommand(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{T: t, Name: filepath.Base(cmd.Path), Cmd: cmd, mark: rand.Text(), exited: make(chan struct{})}
	cmd.Env = append(cmd.Environ(), markVariable+"="+p.mark)
	stdout, given := cmd.Stdout.(*os.File)
	stderr := stdout
	if !given {
		stdout, stderr = p.collect(&p.stdout), p.collect(&p.Stderr)
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	t.Cleanup(p.cleanup)
	err := cmd.Start()
	stdout.Close()
	stderr.Close()
	if err != nil {
		close(p.exited)
		t.Fatalf("start %s: %v", p.Name, err)
	}
	p.PID = cmd.Process.Pid
	go func() { // ends with the process, which cleanup ends
		_ = cmd.Wait()
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
func (p *Process) collect(into *testkit.Buffer) *os.File {
	p.T.Helper()
	reader, writer, err := os.Pipe()
	testkit.Must(p.T, err)
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
func (p *Process) Log() string { return p.Stderr.String() }

// Output returns what the process has written to stdout so far.
func (p *Process) Output() string { return p.stdout.String() }

// Signal sends a signal to the process alone, not to its children.
func (p *Process) Signal(sig syscall.Signal) {
	p.T.Helper()
	err := p.Cmd.Process.Signal(sig)
	testkit.Need(p.T, err == nil || errors.Is(err, os.ErrProcessDone), "signal %v to %s: %v", sig, p.Name, err)
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
	p.T.Helper()
	testkit.Take(p.T, p.exited, within, "%s (pid %d) has not ended within %v", p.Name, p.PID, within)
	return p.Cmd.ProcessState.ExitCode()
}

// WantExit waits for the end of the process and holds that its exit code is as wanted, and
// that it has said each of the words: on stdout if it is to succeed, otherwise on stderr.
func (p *Process) WantExit(within time.Duration, code int, words ...string) {
	p.T.Helper()
	got, said := p.ExitCode(within), p.Output()
	if code != 0 {
		said = p.Log()
	}
	unsaid := func(word string) bool { return !strings.Contains(said, word) }
	testkit.Want(p.T, got == code && !slices.ContainsFunc(words, unsaid),
		"%q has ended with %v, want exit code %d and %q in:\n%s%s", p.Cmd.Args, p.Cmd.ProcessState, code, words, p.Output(), p.Log())
}

// WantRefusal is WantExit of a process that says why in one line.
func (p *Process) WantRefusal(code int, words ...string) {
	p.T.Helper()
	p.WantExit(Patience, code, words...)
	testkit.Want(p.T, strings.Count(p.Log(), "\n") == 1, "%q has said %q, want one line", p.Cmd.Args, p.Log())
}

// StopBy ends the process by a signal and holds it to R17: the exit code is 0 within the
// bound, and nothing is left of its family.
func (p *Process) StopBy(sig syscall.Signal) {
	p.T.Helper()
	p.Signal(sig)
	p.WantExit(StopBound, 0)
	p.WaitNoneLeft(Patience)
}

// WaitLog waits until a line of stderr contains text and returns that line.
func (p *Process) WaitLog(within time.Duration, text string) string {
	p.T.Helper()
	var line string
	p.Wait(within, fmt.Sprintf("a line with %q from %s", text, p.Name), func() bool {
		line = LineWith(p.Log(), text)
		return line != ""
	})
	return line
}

// Wait is testkit.Eventually that fails at once when the process has ended.
func (p *Process) Wait(within time.Duration, what string, done func() bool) {
	p.T.Helper()
	testkit.Eventually(p.T, within, what, func() bool {
		ended := p.Exited() // before done, which may see what was written last
		if done() {
			return true
		}
		testkit.Need(p.T, !ended, "%s ended (%v) while the test waited for: %s", p.Name, p.Cmd.ProcessState, what)
		return false
	})
}

// Kill ends the process by SIGKILL and waits for its end. Its children are not
// touched: WaitNoneLeft says what became of them.
func (p *Process) Kill() {
	p.T.Helper()
	p.Signal(syscall.SIGKILL)
	p.ExitCode(Patience)
}

// WaitNoneLeft waits until no process of the family is left: neither this one
// nor anything that it or its children started.
func (p *Process) WaitNoneLeft(within time.Duration) {
	p.T.Helper()
	var left []int
	deadline := time.Now().Add(within)
	for pause := time.NewTicker(10 * time.Millisecond); ; <-pause.C {
		if left = family(p.mark); len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			p.T.Fatalf(testkit.NotAgain+"%v after the end of %s still there: %s", within, p.Name, Describe(left))
		}
	}
}

// Family returns the pids of the process and of all that it or its children
// started and that still run, in no order. It needs /proc: elsewhere than on
// Linux it is empty.
func (p *Process) Family() []int { return family(p.mark) }

// cleanup leaves nothing behind, whatever the test has done.
func (p *Process) cleanup() {
	if p.Cmd.Process != nil {
		_ = p.Cmd.Process.Kill()
	}
	<-p.exited
	for _, pid := range family(p.mark) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	p.awaitOutput(Patience)
	if said := p.broken(); said != "" {
		p.T.Errorf(testkit.NotAgain+"%s has written %q", p.Name, said)
	}
	if p.T.Failed() {
		p.T.Logf("stderr of %s (pid %d):\n%s", p.Name, p.PID, tail(p.Log(), 200))
	}
}

// broken returns the first line by which the program tells of a bug that ended it, or
// of a race. Workers that this test binary plays panic by order.
func (p *Process) broken() string {
	if p.Cmd.Path == os.Args[0] {
		return ""
	}
	for _, log := range []string{p.Output(), p.Log()} {
		for line := range strings.Lines(log) {
			if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "WARNING: DATA RACE") {
				return strings.TrimSpace(line)
			}
		}
	}
	return ""
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

// Describe words processes for a message.
func Describe(pids []int) string {
	var all []string
	for _, pid := range pids {
		cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		all = append(all, fmt.Sprintf("%d (%s)", pid, strings.TrimSpace(string(bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})))))
	}
	return strings.Join(all, ", ")
}

// LineWith returns the first whole line that contains text, or nothing.
func LineWith(log, text string) string {
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

// Root is the root of the tree, which has a file VERSION; the lab is a module below it.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	testkit.Must(t, err)
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "VERSION")); err == nil {
			return dir
		}
	}
	t.Fatal("no VERSION above this folder")
	return ""
}

// Tool returns the path of a tool that the Makefile builds into .tools.
func Tool(t testing.TB, name string) string {
	t.Helper()
	return Built(t, filepath.Join(Root(t), ".tools", name), "make tools")
}

// Built returns path if there is such a file; the test fails otherwise, for
// it must not pass without having run.
func Built(t testing.TB, path, command string) string {
	t.Helper()
	_, err := os.Stat(path)
	testkit.Need(t, err == nil, "%v: run '%s' first", err, command)
	return path
}

// ShortTempDir is t.TempDir with a path short enough for a socket in it.
func ShortTempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cabrank-real-") //nolint:usetesting // t.TempDir is too long for a socket's path
	testkit.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// WriteFile writes a file, which its owner may execute, into a folder of its own.
func WriteFile[T ~string | ~[]byte](t testing.TB, name string, text T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	testkit.Must(t, os.WriteFile(path, []byte(text), 0o700))
	return path
}

// WantEmpty holds that nothing is left in a folder.
func WantEmpty(t testing.TB, dir string) {
	t.Helper()
	left := FilesIn(t, dir)
	testkit.Want(t, len(left) == 0, "left in %s: %q", dir, left)
}

// FilesIn lists the names in a folder.
func FilesIn(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	testkit.Must(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
