package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
)

// ShortWork is long enough for calls to overlap.
const ShortWork = 20 * time.Millisecond

// StartFault starts cabrank over fault workers: unix sockets, so that tests on
// the same machine cannot collide.
func StartFault(t testing.TB, worker []string, flags ...string) *Cabrank {
	t.Helper()
	args := slices.Concat([]string{"--transport", "unix"}, flags, []string{"--"}, worker)
	return StartCabrank(t, args...)
}

// RunLine is the command line of a cabrank over such workers for who starts it in another
// way. Without other flags it has no pages.
func RunLine(t testing.TB, worker []string, flags ...string) []string {
	t.Helper()
	line := []string{CabrankBinary(t), "run", "--listen", "127.0.0.1:0", "--probes", "off", "--metrics", "off", "--transport", "unix"}
	return slices.Concat(line, flags, []string{"--"}, worker)
}

// Outcome is how one call ended.
type Outcome struct {
	ID     string
	Worker string // who answered; empty after an error
	Err    error
}

// CallIo makes one call that keeps a slot for a time. The id is in the worker's
// output if it got there.
func CallIo(ctx context.Context, conn *grpc.ClientConn, id string, work time.Duration) Outcome {
	ctx = metadata.AppendToOutgoingContext(ctx, CallIDKey, id)
	reply, err := workpb.NewWorkClient(conn).Io(ctx, &workpb.IoRequest{Millis: uint32(work.Milliseconds())})
	return Outcome{ID: id, Worker: reply.GetWorker(), Err: err}
}

// GoIo begins such a call, which ends with ctx at the latest, and sends its end.
func GoIo(ctx context.Context, conn *grpc.ClientConn, id string, work time.Duration) <-chan Outcome {
	ended := make(chan Outcome, 1)
	go func() { ended <- CallIo(ctx, conn, id, work) }()
	return ended
}

// WantOK holds that the call was answered.
func (o Outcome) WantOK(t testing.TB) {
	t.Helper()
	testkit.Want(t, o.Err == nil, "call %s: %v", o.ID, o.Err)
}

// Taken counts the executions of every call by its id, from the workers'
// output.
func (c *Cabrank) Taken() map[string]int {
	times := map[string]int{}
	for _, match := range takenLine.FindAllStringSubmatch(c.Output(), -1) {
		times[match[1]]++
	}
	return times
}

var takenLine = regexp.MustCompile(`\btook ([0-9a-z-]+)`)

// WaitTaken waits until n calls have arrived at workers.
func (c *Cabrank) WaitTaken(n int) {
	c.T.Helper()
	c.Wait(Patience, fmt.Sprintf("%d calls at workers", n), func() bool { return len(c.Taken()) >= n })
}

// Load is a number of callers that never pause.
//
// Life: StartLoad, stop once. Concurrency: outcomes may be read at any time.
type Load struct {
	Quit    chan struct{}
	Callers sync.WaitGroup

	mu   sync.Mutex
	seen []Outcome // guarded by mu
}

// StartLoad begins to call over one connection. Each call has a deadline that
// only a lost call reaches.
func StartLoad(t testing.TB, addr string, callers int, work time.Duration) *Load {
	t.Helper()
	conn := Dial(t, addr)
	l := &Load{Quit: make(chan struct{})}
	for caller := range callers {
		l.Callers.Go(func() { l.run(t.Context(), conn, caller, work) })
	}
	return l
}

func (l *Load) run(ctx context.Context, conn *grpc.ClientConn, caller int, work time.Duration) {
	for call := 0; ; call++ {
		select {
		case <-l.Quit:
			return
		default:
		}
		limited, cancel := context.WithTimeout(ctx, CallBound)
		got := CallIo(limited, conn, fmt.Sprintf("%d-%d", caller, call), work)
		cancel()
		l.Note(got)
		if got.Err != nil && !strings.HasPrefix(status.Convert(got.Err).Message(), "cabrank: ") {
			return // nobody listens any more: calling on would only burn CPU
		}
	}
}

// Note adds a call that was made elsewhere.
func (l *Load) Note(got Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, got)
}

// Outcomes returns what has ended so far.
func (l *Load) Outcomes() []Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

// Stop lets the calls in flight end and returns all outcomes.
func (l *Load) Stop() []Outcome {
	close(l.Quit)
	l.Callers.Wait()
	return l.Outcomes()
}

// WantNoFailure is Stop that holds that all calls were answered.
func (l *Load) WantNoFailure(t testing.TB) []Outcome {
	t.Helper()
	all := l.Stop()
	if failed := Failures(all); len(failed) > 0 {
		t.Errorf("%d of %d calls failed, the first, %s, with %v", len(failed), len(all), failed[0].ID, failed[0].Err)
	}
	return all
}

// Failures returns the calls that were not answered with OK.
func Failures(all []Outcome) []Outcome {
	return slices.DeleteFunc(slices.Clone(all), func(o Outcome) bool { return o.Err == nil })
}

// WaitAnswered waits until n more calls than before have been answered, by the
// named worker if there is a name.
func (l *Load) WaitAnswered(t testing.TB, worker string, n int) {
	t.Helper()
	before := len(l.Outcomes())
	testkit.Eventually(t, Patience, "answers of "+worker, func() bool {
		count := 0
		for _, o := range l.Outcomes()[before:] {
			if o.Err == nil && (worker == "" || o.Worker == worker) {
				count++
			}
		}
		return count >= n
	})
}

// ReadyPIDs returns the processes of a worker that have been ready, in order.
func (c *Cabrank) ReadyPIDs(worker string) []int {
	var pids []int
	for _, line := range c.LogLines("worker ready") {
		if pid, err := strconv.Atoi(line.Text("pid")); err == nil && line.Text("worker") == worker {
			pids = append(pids, pid)
		}
	}
	return pids
}

// WaitWorkers waits until n workers have been ready and returns the PID of the
// first.
func (c *Cabrank) WaitWorkers(n int) int {
	c.T.Helper()
	c.Wait(Patience, fmt.Sprintf("%d ready workers", n), func() bool { return len(c.LogLines("worker ready")) >= n })
	c.Wait(Patience, "worker-1 to be ready", func() bool { return len(c.ReadyPIDs("worker-1")) > 0 })
	return c.ReadyPIDs("worker-1")[0]
}

// Booted is WaitWorkers for who has just started c, which it returns.
func (c *Cabrank) Booted(n int) *Cabrank {
	c.T.Helper()
	c.WaitWorkers(n)
	return c
}

// ProbeWatch asks a probe all the time.
//
// Life: WatchProbe, stop once.
type ProbeWatch struct {
	end  context.CancelFunc
	seen chan Probing
}

// WatchProbe begins to ask a probe.
func (c *Cabrank) WatchProbe(name string) *ProbeWatch {
	ctx, end := context.WithCancel(context.Background())
	w := &ProbeWatch{end: end, seen: make(chan Probing, 1)}
	go func() { w.seen <- c.TimedProbe(ctx, 10*time.Millisecond, Patience, name) }() // ended by Stop
	return w
}

// Stop returns how often each status was seen.
func (w *ProbeWatch) Stop() map[int]int {
	w.end()
	return (<-w.seen).Statuses
}

// WantStatus compares the code and, as they are part of the interface, the
// message of an error.
func WantStatus(t testing.TB, err error, code codes.Code, message string) {
	t.Helper()
	got := status.Convert(err)
	testkit.Want(t, got.Code() == code && got.Message() == message, "got %v %q, want %v %q", got.Code(), got.Message(), code, message)
}

// KillPID ends one process of the family by SIGKILL.
func (c *Cabrank) KillPID(pid int) { c.T.Helper(); c.SignalTo(pid, syscall.SIGKILL) }

// SignalTo sends a signal to one process of the family.
func (c *Cabrank) SignalTo(pid int, sig syscall.Signal) {
	c.T.Helper()
	err := syscall.Kill(pid, sig)
	testkit.Need(c.T, err == nil, "signal %v to %d: %v", sig, pid, err)
}

// WantTakenOnce holds that no call ran twice and that what was answered ran. It
// is for after the end, when all output has been written.
func (c *Cabrank) WantTakenOnce(all []Outcome) {
	c.T.Helper()
	taken := c.Taken()
	for id, times := range taken {
		testkit.Want(c.T, times <= 1, "call %s ran %d times", id, times)
	}
	for _, o := range all {
		testkit.Want(c.T, o.Err != nil || taken[o.ID] != 0, "call %s was answered and never ran", o.ID)
	}
}

// Upload sends one message and reads its echo.
func Upload(ctx context.Context, conn *grpc.ClientConn, message string) error {
	stream, err := workpb.NewWorkClient(conn).Chat(ctx)
	if err != nil {
		return err
	}
	// An end that comes early is told by Recv.
	if err := stream.Send(&workpb.ChatMessage{Text: message}); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	reply, err := stream.Recv()
	if err != nil {
		return err
	}
	if len(reply.GetText()) != len(message) {
		return fmt.Errorf("%d bytes came back as %d", len(message), len(reply.GetText()))
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// ChangeLimit is how long a change may take: a roll waits for faults to heal.
const ChangeLimit = 2 * time.Minute

// HandedOver is the line that tells who has taken over.
const HandedOver = "handed over"

// CallCPUOnce makes a call of a millisecond.
func CallCPUOnce(ctx context.Context, client workpb.WorkClient) error {
	ctx, cancel := context.WithTimeout(ctx, CallBound)
	defer cancel()
	reply, err := client.Cpu(ctx, &workpb.CpuRequest{N: 10})
	if err == nil && reply.GetValue() != 55 {
		return status.Errorf(codes.DataLoss, "fib(10) is %d", reply.GetValue())
	}
	return err
}

// StreamOnce takes a stream of two seconds.
func StreamOnce(ctx context.Context, client workpb.WorkClient) error {
	ctx, cancel := context.WithTimeout(ctx, CallBound)
	defer cancel()
	const numbers = 21
	stream, err := client.Count(ctx, &workpb.CountRequest{To: numbers, PauseMillis: 100})
	if err != nil {
		return err
	}
	for n := uint32(1); n <= numbers; n++ {
		number, err := stream.Recv()
		if err != nil {
			return err
		}
		if number.GetValue() != n {
			return status.Errorf(codes.DataLoss, "number %d is %d", n, number.GetValue())
		}
	}
	return nil
}

// CancelOnce leaves a stream after its first message.
func CancelOnce(ctx context.Context, client workpb.WorkClient) error {
	ctx, cancel := context.WithTimeout(ctx, CallBound)
	defer cancel()
	stream, err := client.Count(ctx, &workpb.CountRequest{To: 1000, PauseMillis: 1000}, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	if _, err := stream.Recv(); err != nil {
		return err
	}
	cancel()
	if _, err := stream.Recv(); status.Code(err) != codes.Canceled {
		return fmt.Errorf("after the cancel: %w", err)
	}
	return nil
}
