package handover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// bound is how long anything here may take.
const bound = 20 * time.Second

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// beSuccessor is the process that Upgrade starts in these tests, with the ways
// in which one can fail.
func beSuccessor(mode string) int {
	switch mode {
	case "manager", "service":
		return beManager(mode)
	case "ends":
		return 3
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
		fallthrough
	case "silent":
		<-time.After(2 * bound) // the test ends it
		return 0
	case "foreign":
		_, _ = os.NewFile(firstInherited, "link").WriteString("HTTP/1.1 400 Bad Request\r\n\r\n")
		<-time.After(2 * bound)
		return 0
	}
	if mode == "refuses" {
		Refuse(manyFaults())
		return 2
	}
	in, err := Inherit(quiet())
	if err != nil {
		return 4
	}
	p := in.Predecessor
	switch mode {
	case "later version":
		_ = p.send(&message{Kind: kindHello, Oldest: 7, Newest: 9, Program: "v9.0.0"})
		<-time.After(2 * bound)
		return 0
	case "impatient": // is never ready
		_ = p.Greet("test", time.Millisecond)
		<-time.After(2 * bound)
		return 0
	}
	if err := p.Greet("test", bound); err != nil {
		return 5
	}
	if mode == "fails" {
		p.Fail(errors.New("port 1 is taken"))
		return 1
	}
	for n := range p.Workers {
		p.Tell(Progress{Step: StepWorker, Worker: fmt.Sprintf("worker-%d", n+1), Done: n + 1, Total: p.Workers})
	}
	if err := p.Take(in.Listeners); err != nil {
		return 6
	}
	if mode == "ends with the listeners" {
		return 7
	}
	return serveOnce(in, p, mode)
}

// manyFaults are more than one message holds.
func manyFaults() []string {
	var faults []string
	for i := range 1000 {
		faults = append(faults, fmt.Sprintf("cabrank.yml:%d: <&> no such key\x00", i+1))
	}
	return faults
}

// serveOnce answers one connection, and lives until the old process has gone.
func serveOnce(in *Inherited, p *Predecessor, mode string) int {
	none := func() (net.Listener, error) { return nil, errors.New("nothing was handed over") }
	on, _, err := in.Listeners.Open(Traffic, "tcp", "127.0.0.1:0", none)
	if err != nil {
		return 8
	}
	if _, err := in.Listeners.Rest(); err != nil {
		return 9
	}
	if mode == "never serves" {
		<-p.Gone()
		return 0
	}
	if err := p.Serving(); err != nil {
		return 10
	}
	conn, err := on.Accept()
	if err != nil {
		return 11
	}
	fmt.Fprintf(conn, "%d", os.Getpid())
	conn.Close()
	<-p.Gone()
	return 0
}

// old is the running side.
type old struct {
	Options
	t        *testing.T
	listener net.Listener
	cmd      *exec.Cmd
	state    chan *os.ProcessState
	over     int
	steps    []Progress
}

func newOld(t *testing.T, mode string) *old {
	t.Helper()
	path, err := os.Executable()
	testkit.Must(t, err)
	o := &old{t: t, state: make(chan *os.ProcessState, 1)}
	o.Options = Options{
		Version: "test", Path: path, Environ: append(os.Environ(), successorVariable+"="+mode),
		Workers: 2, Listeners: &Listeners{}, EndLimit: 500 * time.Millisecond,
		Over: func(pid int) { o.over = pid },
		Start: func(cmd *exec.Cmd) (func() *os.ProcessState, error) {
			o.cmd = cmd
			return func() *os.ProcessState {
				_ = cmd.Wait()
				o.state <- cmd.ProcessState
				return cmd.ProcessState
			}, cmd.Start()
		},
	}
	o.listener = o.open(Traffic, "tcp", "127.0.0.1:0")
	t.Cleanup(func() {
		if o.cmd != nil && o.cmd.Process != nil {
			_ = o.cmd.Process.Kill()
		}
	})
	return o
}

func (o *old) open(name, network, address string) net.Listener {
	o.t.Helper()
	on, _, err := o.Listeners.Open(name, network, address, func() (net.Listener, error) { return net.Listen(network, address) })
	testkit.Must(o.t, err)
	o.t.Cleanup(func() { on.Close() })
	return on
}

func (o *old) upgrade(ctx context.Context) (*Successor, error) {
	return Upgrade(ctx, o.Options, func(p Progress) { o.steps = append(o.steps, p) })
}

// The listeners pass to a process that serves on them while the old one has
// stopped; no connection is refused in between, and the successor sees the old
// process go (R20).
func TestUpgrade(t *testing.T) {
	descriptors := openDescriptors(t)
	o := newOld(t, "good")
	next, err := o.upgrade(t.Context())
	testkit.Must(t, err)
	testkit.Want(t, next.PID == o.cmd.Process.Pid && o.over == next.PID,
		"successor %d, told of %d, started %d", next.PID, o.over, o.cmd.Process.Pid)
	addr := o.listener.Addr().String()
	o.listener.Close()
	conn := testkit.Dial(t, addr)
	said, _ := io.ReadAll(conn)
	conn.Close()
	want := fmt.Sprint(next.PID)
	testkit.Want(t, string(said) == want, "%q answered, want %s", said, want)
	next.link.close() // as the end of this process would
	state := <-o.state
	testkit.Want(t, state.ExitCode() == 0, "successor: %v", state)
	wantSteps(t, o.steps, StepStarted, StepWorker, StepWorker, StepTaking, StepOver)
	if runtime.GOOS == "linux" {
		testkit.Eventually(t, bound, "descriptors to be closed", func() bool { return openDescriptors(t) <= descriptors })
	}
}

func wantSteps(t *testing.T, got []Progress, want ...string) {
	t.Helper()
	var names []string
	for _, step := range got {
		names = append(names, step.Step)
	}
	testkit.Want(t, strings.Join(names, ", ") == strings.Join(want, ", "), "steps %q, want %q", names, want)
}

// Whatever the new process does before it serves, the old one goes on with its
// listeners, says why, and nothing is left of the new one (R20).
func TestUpgradeThatFails(t *testing.T) {
	for mode, want := range map[string]string{
		"ends":                    "it ended before it was ready (exit status 3); if it said why, that is in the log of the running cabrank",
		"ends with the listeners": "it ended before it was ready (exit status 7); if it said why, that is in the log of the running cabrank",
		"fails":                   "port 1 is taken",
		"foreign":                 "not a message of cabrank",
		"later version":           "it is cabrank v9.0.0 and speaks versions 7 to 9 of the handover, this one 1 to 1: stop this one and start that",
	} {
		t.Run(mode, func(t *testing.T) {
			o := newOld(t, mode)
			_, err := o.upgrade(t.Context())
			if want := fmt.Sprintf("the new process (pid %d) was given up: %s", o.cmd.Process.Pid, want); err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			o.wantUnharmed()
		})
	}
}

// What is wrong with its configuration is told by a process that begins nothing, as
// far as there is room. Nobody is told if nobody listens.
func TestUpgradeRefused(t *testing.T) {
	Refuse([]string{"of a process that was started by a shell"})
	t.Setenv(upgradeVariable, "99999")
	Refuse([]string{"without anybody there"})
	o := newOld(t, "refuses")
	_, err := o.upgrade(t.Context())
	refused, ok := errors.AsType[*RefusedError](err)
	testkit.Need(t, ok && refused.Reason == "cabrank.yml:1: <&> no such key (and 999 more)", "got %v", err)
	last := len(refused.Faults) - 1
	if last < 100 || refused.Faults[1] != "cabrank.yml:2: <&> no such key" || refused.Faults[last] != fmt.Sprintf("and %d more", 1000-last) {
		t.Errorf("%d faults, the last %q", len(refused.Faults), refused.Faults[last])
	}
	o.wantUnharmed()
}

// wantUnharmed holds the old process to what it was before.
func (o *old) wantUnharmed() {
	o.t.Helper()
	testkit.Take(o.t, o.state, bound, "the new process is still there")
	testkit.Want(o.t, o.over == 0, "the new process was made the main one")
	go func() { // ends with the test's connection, or with its listener
		if conn, err := net.Dial("tcp", o.listener.Addr().String()); err == nil {
			conn.Close()
		}
	}()
	conn, err := o.listener.Accept()
	testkit.Must(o.t, err)
	conn.Close()
}

// The end of the context gives the upgrade up at any point, also against a
// process that ignores TERM.
func TestUpgradeInterrupted(t *testing.T) {
	for _, mode := range []string{"silent", "deaf", "impatient", "never serves"} {
		t.Run(mode, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			o := newOld(t, mode)
			at := StepStarted
			if mode == "never serves" {
				at = StepTaking
			}
			_, err := Upgrade(ctx, o.Options, func(p Progress) {
				if p.Step == at {
					cancel(errors.New("asked to stop"))
				}
			})
			testkit.Want(t, err != nil && strings.HasSuffix(err.Error(), ": asked to stop"), "got %v", err)
			o.wantUnharmed()
		})
	}
}

func TestUpgradeOfWhatIsNotThere(t *testing.T) {
	o := newOld(t, "")
	o.Path = filepath.Join(t.TempDir(), "cabrank")
	start := o.Start
	o.Start = func(cmd *exec.Cmd) (func() *os.ProcessState, error) {
		wait, err := start(cmd)
		o.cmd = nil
		return wait, err
	}
	_, err := o.upgrade(t.Context())
	testkit.Want(t, errors.Is(err, os.ErrNotExist), "got %v", err)
}

// openDescriptors counts what this process has open.
func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	testkit.Need(t, err == nil || runtime.GOOS != "linux", "%v", err)
	return len(entries)
}

// Program is the path that was used, not the file behind it.
func TestProgram(t *testing.T) {
	path, err := Program()
	testkit.Must(t, err)
	running, err := os.Executable()
	testkit.Must(t, err)
	one, _ := os.Stat(path)
	two, _ := os.Stat(running)
	testkit.Want(t, filepath.IsAbs(path) && os.SameFile(one, two), "%s, running %s", path, running)
	// Where the system does not tell what runs, the first argument has to be right.
	blind, err := program("", fs.ErrNotExist)
	testkit.Want(t, blind == path && err == nil, "without /proc: %s, %v; want %s", blind, err, path)
}

// Of a process that is no child of this one nobody here learns how it has ended: that it
// has is enough.
func TestSiblingThatHasEndedIsNotWaitedFor(t *testing.T) {
	ended := make(chan *os.ProcessState, 1)
	ended <- nil
	c := &candidate{options: &Options{EndLimit: time.Hour}, ended: ended}
	state := c.end(errGone)
	testkit.Want(t, state == nil, "%v", state)
}
