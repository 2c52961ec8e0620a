package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Controlled is a cabrank with a control socket of its own.
type Controlled struct {
	*Cabrank

	Socket string
	Op     *Operator
}

// StartControlled starts cabrank over fault workers, with a control socket in a
// folder that has nothing else.
func StartControlled(t testing.TB, worker []string, flags ...string) *Controlled {
	t.Helper()
	socket := filepath.Join(ShortTempDir(t), "c.sock")
	flags = append(flags, "--control", socket)
	return Control(StartFault(t, worker, flags...), socket)
}

// StartControlledBy is StartControlled behind a wrapper, which starts cabrank by a command
// line and may have ended before it. There are no pages.
func StartControlledBy(t testing.TB, wrapper []string, flags ...string) *Controlled {
	t.Helper()
	socket := filepath.Join(ShortTempDir(t), "c.sock")
	line := RunLine(t, FaultWorker(t), append([]string{"--control", socket}, flags...)...)
	return Control(&Cabrank{Process: StartLine(t, slices.Concat(wrapper, line)...), Ended: true}, socket)
}

// Control is a cabrank that was started with a control socket.
func Control(c *Cabrank, socket string) *Controlled {
	return &Controlled{Cabrank: c, Socket: socket, Op: NewOperator(c.T, socket)}
}

// Command starts a command.
func (c *Controlled) Command(args ...string) *Process {
	c.T.Helper()
	return StartCLI(c.T, slices.Insert(args, 1, "--control", c.Socket)...)
}

// Must runs a command that has to succeed and returns what it printed.
func (c *Controlled) Must(args ...string) string {
	c.T.Helper()
	p := c.Command(args...)
	code := p.ExitCode(Patience)
	testkit.Need(c.T, code == 0, "%v: exit code %d\n%s%s", args, code, p.Output(), p.Log())
	return p.Output()
}

// Status returns the status, which has to be there.
func (c *Controlled) Status() *OperatorStatus {
	c.T.Helper()
	s, err := c.Op.Status()
	testkit.Must(c.T, err)
	return s
}

// Await waits until the status is as wanted.
func (c *Controlled) Await(what string, done func(*OperatorStatus) bool) {
	c.T.Helper()
	testkit.Must(c.T, c.Op.Await(Patience, what, done))
}

// AwaitReady waits until there are n workers, all ready, and returns c.
func (c *Controlled) AwaitReady(n int) *Controlled {
	c.T.Helper()
	c.Await(fmt.Sprintf("%d ready workers", n), func(s *OperatorStatus) bool { return s.Ready == n && len(s.Workers) == n })
	return c
}

// FileExists reports whether there is a file, a socket or a link with this name.
func FileExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// LongCalls begins n calls that outlive every drain, and returns when they run.
func (c *Controlled) LongCalls(ctx context.Context, n int) <-chan Outcome {
	c.T.Helper()
	before := len(c.Taken())
	ended := c.BeginLong(ctx, n)
	c.WaitTaken(before + n)
	return ended
}

// BeginLong is LongCalls that does not wait: the calls may go to other workers.
func (c *Controlled) BeginLong(ctx context.Context, n int) <-chan Outcome {
	c.T.Helper()
	conn, ended, before := Dial(c.T, c.Addr), make(chan Outcome, n), len(c.Taken())
	for i := range n {
		go func() { ended <- CallIo(ctx, conn, fmt.Sprintf("long-%d-%d", before, i), time.Hour) }() // ctx ends it
	}
	return ended
}

// WantCut holds that a command has cut n calls and says so: in its last line, in
// its exit status, and to the callers.
func (c *Controlled) WantCut(ended <-chan Outcome, n, status int, command ...string) {
	c.T.Helper()
	p := c.Command(command...)
	code := p.ExitCode(Patience)
	said := strings.Split(strings.TrimSpace(p.Output()), "\n")
	last, want := said[len(said)-1], fmt.Sprintf(", %d calls were cut", n)
	if slices.Contains(command, "--json") {
		var event map[string]any
		if err := json.Unmarshal([]byte(last), &event); err != nil || event["calls_cut"] != float64(n) || event["done"] != true {
			c.T.Errorf("%v: the last event is %s (%v)", command, last, err)
		}
		want = ""
	}
	testkit.Want(c.T, code == status && strings.HasSuffix(last, want),
		"%v: exit code %d, the last line is %q; want %d, %q\n%s", command, code, last, status, want, p.Log())
	for range n {
		WantStatus(c.T, (<-ended).Err, codes.Unavailable, "cabrank: worker draining")
	}
}

// WantNote looks for a row of the status by its state and note.
func (c *Controlled) WantNote(state, note string) {
	c.T.Helper()
	row := regexp.MustCompile(`(?m)^worker-1 +` + state + ` .*` + regexp.QuoteMeta(note))
	text := c.Must("status")
	testkit.Want(c.T, row.MatchString(text), "no row %s with %q in\n%s", state, note, text)
}

// Stopped runs `cabrank stop` behind a wrapper and wants it to see the end.
func (c *Controlled) Stopped(wrapper ...string) {
	c.T.Helper()
	line := slices.Concat(wrapper, []string{CabrankBinary(c.T), "stop", "--control", c.Socket})
	out, err := exec.Command(line[0], line[1:]...).CombinedOutput()
	testkit.Want(c.T, err == nil, "%s: %v\n%s", strings.Join(line, " "), err, out)
	testkit.Want(c.T, !FileExists(c.Socket), "the socket is left")
}

// pidOf returns the process of a worker, 0 while it has none.
func (c *Controlled) pidOf(worker string) int {
	s, err := c.Op.Status()
	if err != nil {
		return 0
	}
	for _, w := range s.Workers {
		if w.Name == worker {
			return w.PID
		}
	}
	return 0
}

// KillAndAwait ends a worker by SIGKILL and waits for the next one in its place.
func (c *Controlled) KillAndAwait(worker string, n int) {
	c.T.Helper()
	pid := c.pidOf(worker)
	c.KillPID(pid)
	c.Wait(Patience, "another process of "+worker, func() bool { next := c.pidOf(worker); return next != 0 && next != pid })
	c.AwaitReady(n)
}
