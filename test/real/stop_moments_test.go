//go:build real || soak

package real_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Timeouts of the stops below, and what they may take in all.
const (
	stopDrain   = time.Second
	stopWorkers = 500 * time.Millisecond
	stopEnd     = stopDrain + stopWorkers + 5*time.Second
)

// A stopMoment is a situation in which SIGTERM comes, after a random time.
type stopMoment struct {
	name   string
	worker []string
	env    []string
	// begin brings the situation about and returns what must hold after the end.
	begin func(t *testing.T, c *Cabrank, o *operator) (after func())
}

// stopAtAnyMoment sends SIGTERM so often to each situation, after a random time:
// it ends cabrank in time with 0 and leaves nothing of its workers, whatever
// these do (R17).
func stopAtAnyMoment(t *testing.T, seed uint64, rounds int) {
	t.Helper()
	t.Logf("CHAOS_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds {
		for _, moment := range stopMoments(t) {
			wait := time.Duration(random.Int64N(int64(400 * time.Millisecond)))
			t.Run(fmt.Sprintf("%s %d after %v", moment.name, round+1, wait.Round(time.Millisecond)), func(t *testing.T) {
				stopAt(t, moment, wait)
			})
		}
	}
}

func stopMoments(t *testing.T) []stopMoment {
	t.Helper()
	return []stopMoment{
		{name: "boot", worker: faultWorker(t, "-boot", "200ms")},
		{name: "health check", worker: faultWorker(t), env: []string{"HEALTH_CHECK_INTERVAL=10ms"}, begin: whenReady},
		{name: "hooks", worker: faultWorker(t), env: []string{
			"CABRANK_HOOKS_BEFORE_START=sleep 0.2", "CABRANK_HOOKS_AFTER_READY=sleep 1000", "CABRANK_HOOKS_BEFORE_STOP=sleep 0.2",
		}},
		{name: "crash loop", worker: []string{"sh", "-c", "exit 3"}},
		{name: "load", worker: faultWorker(t), begin: underLoad},
		{name: "drain begun", worker: faultWorker(t), begin: alreadyDraining},
		{name: "frozen worker", worker: faultWorker(t), begin: frozen},
		{name: "deaf worker", worker: faultWorker(t, "-deaf"), begin: whenReady},
		{name: "roll", worker: faultWorker(t, "-boot", "100ms"), begin: amid("restart")},
		{name: "reload", worker: faultWorker(t), begin: amid("reload")},
		{name: "upgrade", worker: faultWorker(t, "-boot", "100ms"), begin: amid("upgrade")},
	}
}

func stopAt(t *testing.T, moment stopMoment, wait time.Duration) {
	t.Helper()
	runtime := shortTempDir(t)
	socket := filepath.Join(runtime, "control.sock")
	flags := []string{
		"--control", socket, "--transport", "unix", "--workers", "2", "--slots", "3",
		"--drain-timeout", stopDrain.String(), "--stop-timeout", stopWorkers.String(), "--",
	}
	c := StartCabrankEnv(t, append(moment.env, "XDG_RUNTIME_DIR="+runtime), append(flags, moment.worker...)...)
	after := func() {}
	if moment.begin != nil {
		after = moment.begin(t, c, newOperator(t, socket))
	}
	<-time.After(wait) // the moment is what is tested, not an event to wait for
	c.stopWithin(stopEnd)
	c.stopSuccessor()
	after()
	if left := filesIn(t, runtime); len(left) > 0 {
		t.Errorf("left in the runtime directory: %v", left)
	}
}

// stopWithin is Stop for a cabrank with other timeouts.
func (c *Cabrank) stopWithin(bound time.Duration) {
	c.t.Helper()
	c.ended = true
	c.Signal(syscall.SIGTERM)
	if code := c.ExitCode(bound); code != 0 {
		c.t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
}

// stopSuccessor ends the process that has taken over if the signal came after
// an upgrade, and holds that otherwise nothing is left.
func (c *Cabrank) stopSuccessor() {
	c.t.Helper()
	for _, line := range c.LogLines(handedOver) {
		if pid, err := strconv.Atoi(line.Text("successor")); err == nil && alive(pid) {
			c.signal(pid, syscall.SIGTERM)
			testkit.Eventually(c.t, stopEnd, "the end of the successor", func() bool { return !alive(pid) })
		}
	}
	c.WaitNoneLeft(3 * time.Second)
}

func whenReady(_ *testing.T, c *Cabrank, _ *operator) func() {
	c.waitWorkers(2)
	return func() {}
}

// underLoad has callers that never pause. What a worker has taken, and what
// waits in the queue, is answered; a caller that comes later finds nobody.
func underLoad(t *testing.T, c *Cabrank, _ *operator) func() {
	t.Helper()
	c.waitWorkers(2)
	load := startLoad(t, c.Addr, 10, shortWork)
	load.waitAnswered(t, "", 10)
	return func() {
		all := load.stop()
		for _, o := range failures(all) {
			if message := status.Convert(o.err).Message(); strings.HasPrefix(message, "cabrank: ") {
				t.Errorf("call %s of %d: %s", o.id, len(all), message)
			}
		}
		c.wantTakenOnce(all)
	}
}

// alreadyDraining holds a call that outlives the drain, which has begun.
func alreadyDraining(t *testing.T, c *Cabrank, _ *operator) func() {
	t.Helper()
	c.waitWorkers(2)
	held := make(chan outcome, 1)
	go func() { held <- callIo(t.Context(), dialLang(t, c.Addr), "held", callBound) }()
	c.waitTaken(1)
	c.Signal(syscall.SIGTERM)
	c.wait(patience, "the drain", func() bool { return len(c.LogLines("stopping")) > 0 })
	return func() {
		// The second signal, or the end of the drain, has it answered, not reset.
		if got := <-held; status.Convert(got.err).Message() != "cabrank: shutting down" {
			t.Errorf("the held call: %v", got.err)
		}
	}
}

// amid begins a command under load, and does not wait for its end.
func amid(command string) func(*testing.T, *Cabrank, *operator) func() {
	return func(t *testing.T, c *Cabrank, o *operator) func() {
		t.Helper()
		after := underLoad(t, c, o)
		ended := make(chan struct{})
		go func() { // ends with cabrank
			defer close(ended)
			_ = o.run(changeLimit, command) // it may end before it is done
		}()
		return func() {
			<-ended
			after()
		}
	}
}

// frozen stops a worker that has calls.
func frozen(t *testing.T, c *Cabrank, _ *operator) func() {
	t.Helper()
	pid := c.waitWorkers(2)
	load := startLoad(t, c.Addr, 4, shortWork)
	load.waitAnswered(t, "worker-1", 1)
	c.signal(pid, syscall.SIGSTOP)
	return func() { load.stop() }
}
