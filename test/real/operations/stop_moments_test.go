//go:build real || soak

package operations_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/test/real/harness"
)

// A stopMoment is a situation in which SIGTERM comes, after a random time.
type stopMoment struct {
	name   string
	worker []string
	env    []string
	// begin brings the situation about and returns what must hold after the end.
	begin func(t *testing.T, c *harness.Cabrank, o *harness.Operator) (after func())
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
		{name: "boot", worker: harness.FaultWorker(t, "-boot", "200ms")},
		{name: "health check", worker: harness.FaultWorker(t), env: []string{"HEALTH_CHECK_INTERVAL=10ms"}, begin: whenReady},
		{name: "hooks", worker: harness.FaultWorker(t), env: []string{
			"CABRANK_HOOKS={before_start: sleep 0.2, after_ready: sleep 1000, before_stop: sleep 0.2}",
		}},
		{name: "crash loop", worker: []string{"sh", "-c", "exit 3"}},
		{name: "load", worker: harness.FaultWorker(t), begin: underLoad},
		{name: "drain begun", worker: harness.FaultWorker(t), begin: alreadyDraining},
		{name: "frozen worker", worker: harness.FaultWorker(t), begin: frozen},
		{name: "deaf worker", worker: harness.FaultWorker(t, "-deaf"), begin: whenReady},
		{name: "roll", worker: harness.FaultWorker(t, "-boot", "100ms"), begin: during("restart")},
		{name: "reload", worker: harness.FaultWorker(t), begin: during("reload")},
		{name: "upgrade", worker: harness.FaultWorker(t, "-boot", "100ms"), begin: during("upgrade")},
	}
}

func stopAt(t *testing.T, moment stopMoment, wait time.Duration) {
	t.Helper()
	runtime := harness.ShortTempDir(t)
	socket := filepath.Join(runtime, "control.sock")
	flags := []string{
		"--control", socket, "--transport", "unix", "--workers", "2", "--slots", "3",
		"--drain-timeout", harness.StopDrain.String(), "--stop-timeout", harness.StopWorkers.String(), "--",
	}
	c := harness.StartCabrankEnv(t, append(moment.env, "XDG_RUNTIME_DIR="+runtime), append(flags, moment.worker...)...)
	after := func() {}
	if moment.begin != nil {
		after = moment.begin(t, c, harness.NewOperator(t, socket))
	}
	<-time.After(wait) // the moment is what is tested, not an event to wait for
	c.StopWithin(harness.StopEnd)
	c.StopSuccessor()
	after()
	harness.WantEmpty(t, runtime)
}

func whenReady(_ *testing.T, c *harness.Cabrank, _ *harness.Operator) func() {
	c.WaitWorkers(2)
	return func() {}
}

// underLoad has callers that never pause. What a worker has taken, and what
// waits in the queue, is answered; a caller that comes later finds nobody.
func underLoad(t *testing.T, c *harness.Cabrank, _ *harness.Operator) func() {
	t.Helper()
	c.WaitWorkers(2)
	load := harness.StartLoad(t, c.Addr, 10, harness.ShortWork)
	load.WaitAnswered(t, "", 10)
	return func() {
		all := load.Stop()
		for _, o := range harness.Failures(all) {
			if message := status.Convert(o.Err).Message(); strings.HasPrefix(message, "cabrank: ") {
				t.Errorf("call %s of %d: %s", o.ID, len(all), message)
			}
		}
		c.WantTakenOnce(all)
	}
}

// alreadyDraining holds a call that outlives the drain, which has begun.
func alreadyDraining(t *testing.T, c *harness.Cabrank, _ *harness.Operator) func() {
	t.Helper()
	c.WaitWorkers(2)
	held := harness.GoIo(t.Context(), harness.Dial(t, c.Addr), "held", harness.CallBound)
	c.WaitTaken(1)
	c.Signal(syscall.SIGTERM)
	c.Wait(harness.Patience, "the drain", func() bool { return len(c.LogLines("stopping")) > 0 })
	return func() {
		// The second signal, or the end of the drain, has it answered, not reset.
		if got := <-held; status.Convert(got.Err).Message() != "cabrank: shutting down" {
			t.Errorf("the held call: %v", got.Err)
		}
	}
}

// during begins a command under load, and does not wait for its end.
func during(command string) func(*testing.T, *harness.Cabrank, *harness.Operator) func() {
	return func(t *testing.T, c *harness.Cabrank, o *harness.Operator) func() {
		t.Helper()
		after := underLoad(t, c, o)
		ended := make(chan struct{})
		go func() { // ends with cabrank
			defer close(ended)
			_ = o.Run(harness.ChangeLimit, command) // it may end before it is done
		}()
		return func() {
			<-ended
			after()
		}
	}
}

// frozen stops a worker that has calls.
func frozen(t *testing.T, c *harness.Cabrank, _ *harness.Operator) func() {
	t.Helper()
	pid := c.WaitWorkers(2)
	load := harness.StartLoad(t, c.Addr, 4, harness.ShortWork)
	load.WaitAnswered(t, "worker-1", 1)
	c.SignalTo(pid, syscall.SIGSTOP)
	return func() { load.Stop() }
}
