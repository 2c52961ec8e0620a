//go:build real || soak

package operations_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// SIGTERM at 20 random moments. The seed is fixed, CHAOS_SEED gives another.
func TestStopAtAnyMoment(t *testing.T) {
	stopAtAnyMoment(t, harness.RandomSeed(t, 20261121), 2)
}

// Each signal that asks to stop does, with exit code 0 and nothing left, the
// directory of the sockets included (R17, R19).
func TestEverySignalStops(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			runtime := harness.ShortTempDir(t)
			args := slices.Concat([]string{"--workers", "1", "--transport", "unix", "--"}, harness.FaultWorker(t))
			c := harness.StartCabrankEnv(t, []string{"XDG_RUNTIME_DIR=" + runtime}, args...).Booted(1)
			testkit.Want(t, len(harness.FilesIn(t, runtime)) != 0, "the sockets are not in XDG_RUNTIME_DIR")
			c.Ended = true
			c.StopBy(sig)
			harness.WantEmpty(t, runtime)
		})
	}
}

// With a pre-stop delay everything stays open while the word goes round that
// this one is to be left (R17).
func TestPreStopDelayKeepsServing(t *testing.T) {
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "1", "--pre-stop-delay", "1h").Booted(1)
	c.Ended = true
	c.Signal(syscall.SIGTERM)
	c.Wait(harness.Patience, "readiness to go", func() bool { return c.Probe("readiness") == http.StatusServiceUnavailable })
	conn := harness.Dial(t, c.Addr) // a caller that has not heard of it
	harness.CallIo(t.Context(), conn, "late", 0).WantOK(t)
	reply, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	testkit.Want(t, err == nil && reply.GetStatus() == healthpb.HealthCheckResponse_NOT_SERVING,
		"Health/Check during the delay: %v, %v; want NOT_SERVING", reply.GetStatus(), err)
	testkit.Equal(t, c.Probe("liveness"), http.StatusOK, "liveness during the delay")
	<-time.After(2 * echoTime) // a sooner one would be the same
	c.StopBy(syscall.SIGINT)   // this one does not wait
}

// echoTime is how soon a second signal is the same as the first.
const echoTime = 100 * time.Millisecond

// Who passes a signal on does not ask twice: under timeout(1), which signals its
// child and then the group in which both are, calls end.
func TestEchoOfASignal(t *testing.T) {
	for _, wrapper := range [][]string{nil, {"/usr/bin/timeout", "600"}} {
		t.Run(fmt.Sprint(wrapper), func(t *testing.T) {
			c := harness.StartControlledBy(t, wrapper, "--workers", "1")
			c.Addr = c.Listening("listening")
			c.WaitWorkers(1)
			running := harness.GoIo(t.Context(), harness.Dial(t, c.Addr), "running", time.Second)
			c.WaitTaken(1)
			began := time.Now()
			c.Signal(syscall.SIGTERM)
			if wrapper == nil { // of the same kind the kernel may deliver only one
				c.Signal(syscall.SIGINT)
			}
			if time.Since(began) > echoTime/2 {
				t.Skip("this machine is too busy to send two signals at once")
			}
			(<-running).WantOK(t)
			c.ExitCode(harness.StopBound)
			c.WaitNoneLeft(harness.Patience)
		})
	}
}

// A drain waits for calls, those in the queue too, and not for what holds no
// slot; a second signal does not wait.
func TestSecondSignalDoesNotWait(t *testing.T) {
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "1", "--slots", "1", "--drain-timeout", "10m", "--queue-timeout", "10m").Booted(1)
	conn := harness.Dial(t, c.Addr)
	running := harness.GoIo(t.Context(), conn, "running", harness.CallBound)
	c.WaitTaken(1)
	queued := harness.GoIo(t.Context(), conn, "queued", harness.CallBound)
	c.WaitMetric("cabrank_queue_length", 1)

	c.Ended = true
	c.Signal(syscall.SIGTERM)
	c.Wait(harness.Patience, "the drain", func() bool { return len(c.LogLines("stopping")) > 0 })
	<-time.After(2 * echoTime) // a sooner one would be the same
	c.StopBy(syscall.SIGINT)
	for _, ended := range []<-chan harness.Outcome{running, queued} {
		harness.WantStatus(t, (<-ended).Err, codes.Unavailable, "cabrank: shutting down")
	}
}

// SIGTERM in the first milliseconds, while listeners, keeper and workers come
// up one after the other. Only before cabrank has opened anything may the signal
// itself be the end.
func TestStopInTheFirstMilliseconds(t *testing.T) {
	const seed, moments = 7, 20
	random := rand.New(rand.NewPCG(seed, 0))
	for range moments {
		wait := time.Duration(random.Int64N(int64(60 * time.Millisecond)))
		p := harness.StartLine(t, harness.RunLine(t, harness.FaultWorker(t), "--probes", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--workers", "3")...)
		<-time.After(wait) // the moment is what is tested
		p.Signal(syscall.SIGTERM)
		if code := p.ExitCode(harness.StopEnd); code != 0 && p.Log() != "" {
			t.Errorf("exit code %d after SIGTERM at %v:\n%s", code, wait, p.Log())
		}
		p.WaitNoneLeft(harness.Patience)
	}
}

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
			message := status.Convert(o.Err).Message()
			testkit.Want(t, !strings.HasPrefix(message, "cabrank: "), "call %s of %d: %s", o.ID, len(all), message)
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
		got := <-held
		testkit.Want(t, status.Convert(got.Err).Message() == "cabrank: shutting down", "the held call: %v", got.Err)
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
