//go:build real || soak

package real_test

import (
	"context"
	"fmt"
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

// shortWork is long enough for calls to overlap.
const shortWork = 20 * time.Millisecond

// startFault starts cabrank over fault workers: unix sockets, so that tests on
// the same machine cannot collide.
func startFault(t *testing.T, worker []string, flags ...string) *Cabrank {
	t.Helper()
	args := slices.Concat([]string{"--transport", "unix"}, flags, []string{"--"}, worker)
	return StartCabrank(t, args...)
}

// outcome is how one call ended.
type outcome struct {
	id     string
	worker string // who answered; empty after an error
	err    error
}

// callIo makes one call that keeps a slot for a time. The id is in the worker's
// output if it got there.
func callIo(ctx context.Context, conn *grpc.ClientConn, id string, work time.Duration) outcome {
	ctx = metadata.AppendToOutgoingContext(ctx, callIDKey, id)
	reply, err := workpb.NewWorkClient(conn).Io(ctx, &workpb.IoRequest{Millis: uint32(work.Milliseconds())})
	return outcome{id: id, worker: reply.GetWorker(), err: err}
}

// taken counts the executions of every call by its id, from the workers'
// output.
func (c *Cabrank) taken() map[string]int {
	times := map[string]int{}
	for _, match := range takenLine.FindAllStringSubmatch(c.Output(), -1) {
		times[match[1]]++
	}
	return times
}

var takenLine = regexp.MustCompile(`\btook ([0-9a-z-]+)`)

// waitTaken waits until n calls have arrived at workers.
func (c *Cabrank) waitTaken(n int) {
	c.t.Helper()
	c.wait(patience, fmt.Sprintf("%d calls at workers", n), func() bool { return len(c.taken()) >= n })
}

// load is a number of callers that never pause.
//
// Life: startLoad, stop once. Concurrency: outcomes may be read at any time.
type load struct {
	quit    chan struct{}
	callers sync.WaitGroup

	mu   sync.Mutex
	seen []outcome // guarded by mu
}

// startLoad begins to call over one connection. Each call has a deadline that
// only a lost call reaches.
func startLoad(t *testing.T, addr string, callers int, work time.Duration) *load {
	t.Helper()
	conn := dialLang(t, addr)
	l := &load{quit: make(chan struct{})}
	for caller := range callers {
		l.callers.Go(func() { l.run(t.Context(), conn, caller, work) })
	}
	return l
}

func (l *load) run(ctx context.Context, conn *grpc.ClientConn, caller int, work time.Duration) {
	for call := 0; ; call++ {
		select {
		case <-l.quit:
			return
		default:
		}
		limited, cancel := context.WithTimeout(ctx, callBound)
		got := callIo(limited, conn, fmt.Sprintf("%d-%d", caller, call), work)
		cancel()
		l.note(got)
		if got.err != nil && !strings.HasPrefix(status.Convert(got.err).Message(), "cabrank: ") {
			return // nobody listens any more: calling on would only burn CPU
		}
	}
}

func (l *load) note(got outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, got)
}

// outcomes returns what has ended so far.
func (l *load) outcomes() []outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

// stop lets the calls in flight end and returns all outcomes.
func (l *load) stop() []outcome {
	close(l.quit)
	l.callers.Wait()
	return l.outcomes()
}

// failures returns the calls that were not answered with OK.
func failures(all []outcome) []outcome {
	return slices.DeleteFunc(slices.Clone(all), func(o outcome) bool { return o.err == nil })
}

// waitAnswered waits until n more calls than before have been answered, by the
// named worker if there is a name.
func (l *load) waitAnswered(t *testing.T, worker string, n int) {
	t.Helper()
	before := len(l.outcomes())
	testkit.Eventually(t, patience, "answers of "+worker, func() bool {
		count := 0
		for _, o := range l.outcomes()[before:] {
			if o.err == nil && (worker == "" || o.worker == worker) {
				count++
			}
		}
		return count >= n
	})
}

// readyPIDs returns the processes of a worker that have been ready, in order.
func (c *Cabrank) readyPIDs(worker string) []int {
	var pids []int
	for _, line := range c.LogLines("worker ready") {
		if pid, err := strconv.Atoi(line.Text("pid")); err == nil && line.Text("worker") == worker {
			pids = append(pids, pid)
		}
	}
	return pids
}

// waitWorkers waits until n workers have been ready and returns the PID of the
// first.
func (c *Cabrank) waitWorkers(n int) int {
	c.t.Helper()
	c.wait(patience, fmt.Sprintf("%d ready workers", n), func() bool { return len(c.LogLines("worker ready")) >= n })
	c.wait(patience, "worker-1 to be ready", func() bool { return len(c.readyPIDs("worker-1")) > 0 })
	return c.readyPIDs("worker-1")[0]
}

// probeWatch asks a probe all the time.
//
// Life: watchProbe, stop once.
type probeWatch struct {
	quit, done chan struct{}
	seen       map[int]int // answers by status; read after done
}

func (c *Cabrank) watchProbe(name string) *probeWatch {
	w := &probeWatch{quit: make(chan struct{}), done: make(chan struct{}), seen: map[int]int{}}
	go func() { // ended by stop
		defer close(w.done)
		pause := time.NewTicker(10 * time.Millisecond)
		defer pause.Stop()
		for {
			select {
			case <-w.quit:
				return
			case <-pause.C:
				w.seen[c.Probe(name)]++
			}
		}
	}()
	return w
}

// stop returns how often each status was seen.
func (w *probeWatch) stop() map[int]int {
	close(w.quit)
	<-w.done
	return w.seen
}

// wantStatus compares the code and, as they are part of the interface, the
// message of an error.
func wantStatus(t *testing.T, err error, code codes.Code, message string) {
	t.Helper()
	if got := status.Convert(err); got.Code() != code || got.Message() != message {
		t.Errorf("got %v %q, want %v %q", got.Code(), got.Message(), code, message)
	}
}

// kill ends one process of the family by SIGKILL.
func (c *Cabrank) kill(pid int) { c.t.Helper(); c.signal(pid, syscall.SIGKILL) }

// signal sends a signal to one process of the family.
func (c *Cabrank) signal(pid int, sig syscall.Signal) {
	c.t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		c.t.Fatalf("signal %v to %d: %v", sig, pid, err)
	}
}

// wantTakenOnce holds that no call ran twice and that what was answered ran. It
// is for after the end, when all output has been written.
func (c *Cabrank) wantTakenOnce(all []outcome) {
	c.t.Helper()
	taken := c.taken()
	for id, times := range taken {
		if times > 1 {
			c.t.Errorf("call %s ran %d times", id, times)
		}
	}
	for _, o := range all {
		if o.err == nil && taken[o.id] == 0 {
			c.t.Errorf("call %s was answered and never ran", o.id)
		}
	}
}
