//go:build real

package real_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
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
	begin func(t *testing.T, c *Cabrank) (after func())
}

// SIGTERM at any moment ends cabrank in time with 0 and leaves nothing of its
// workers, whatever these do (R17).
func TestStopAtAnyMoment(t *testing.T) {
	const seed, rounds = 20261121, 3
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
		{name: "crash loop", worker: []string{"sh", "-c", "exit 3"}},
		{name: "load", worker: faultWorker(t), begin: underLoad},
		{name: "drain begun", worker: faultWorker(t), begin: alreadyDraining},
		{name: "frozen worker", worker: faultWorker(t), begin: frozen},
		{name: "deaf worker", worker: faultWorker(t, "-deaf"), begin: whenReady},
	}
}

func stopAt(t *testing.T, moment stopMoment, wait time.Duration) {
	t.Helper()
	flags := []string{
		"--transport", "unix", "--workers", "2", "--slots", "3",
		"--drain-timeout", stopDrain.String(), "--stop-timeout", stopWorkers.String(), "--",
	}
	c := StartCabrankEnv(t, moment.env, append(flags, moment.worker...)...)
	after := func() {}
	if moment.begin != nil {
		after = moment.begin(t, c)
	}
	<-time.After(wait) // the moment is what is tested, not an event to wait for
	c.stopWithin(stopEnd)
	after()
}

// stopWithin is Stop for a cabrank with other timeouts.
func (c *Cabrank) stopWithin(bound time.Duration) {
	c.t.Helper()
	c.ended = true
	c.Signal(syscall.SIGTERM)
	if code := c.ExitCode(bound); code != 0 {
		c.t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	c.WaitNoneLeft(3 * time.Second)
}

func whenReady(_ *testing.T, c *Cabrank) func() {
	c.waitWorkers(2)
	return func() {}
}

// underLoad has callers that never pause. What a worker has taken, and what
// waits in the queue, is answered; a caller that comes later finds nobody.
func underLoad(t *testing.T, c *Cabrank) func() {
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
func alreadyDraining(t *testing.T, c *Cabrank) func() {
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

// frozen stops a worker that has calls.
func frozen(t *testing.T, c *Cabrank) func() {
	t.Helper()
	pid := c.waitWorkers(2)
	load := startLoad(t, c.Addr, 4, shortWork)
	load.waitAnswered(t, "worker-1", 1)
	c.signal(pid, syscall.SIGSTOP)
	return func() { load.stop() }
}

// Each signal that asks to stop does, with exit code 0 and nothing left, the
// directory of the sockets included (R17, R19).
func TestEverySignalStops(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			runtime := shortTempDir(t)
			args := slices.Concat([]string{"--workers", "1", "--transport", "unix", "--"}, faultWorker(t))
			c := StartCabrankEnv(t, []string{"XDG_RUNTIME_DIR=" + runtime}, args...)
			c.waitWorkers(1)
			if len(filesIn(t, runtime)) == 0 {
				t.Error("the sockets are not in XDG_RUNTIME_DIR")
			}
			c.ended = true
			c.Signal(sig)
			if code := c.ExitCode(stopBound); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			c.WaitNoneLeft(3 * time.Second)
			if left := filesIn(t, runtime); len(left) > 0 {
				t.Errorf("left in the runtime directory: %v", left)
			}
		})
	}
}

// With a pre-stop delay everything stays open while the word goes round that
// this one is to be left (R17).
func TestPreStopDelayKeepsServing(t *testing.T) {
	c := startFault(t, faultWorker(t), "--workers", "1", "--pre-stop-delay", "2s")
	c.waitWorkers(1)
	c.ended = true
	c.Signal(syscall.SIGTERM)
	c.wait(patience, "readiness to go", func() bool { return c.Probe("readiness") == http.StatusServiceUnavailable })
	conn := dialLang(t, c.Addr) // a caller that has not heard of it
	if got := callIo(t.Context(), conn, "late", 0); got.err != nil {
		t.Errorf("a call during the delay: %v", got.err)
	}
	reply, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || reply.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("Health/Check during the delay: %v, %v; want NOT_SERVING", reply.GetStatus(), err)
	}
	if got := c.Probe("liveness"); got != http.StatusOK {
		t.Errorf("liveness during the delay: %d", got)
	}
	if code := c.ExitCode(stopBound); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	c.WaitNoneLeft(3 * time.Second)
}

// A drain waits for calls, those in the queue too, and not for what holds no
// slot; a second signal does not wait.
func TestSecondSignalDoesNotWait(t *testing.T) {
	c := startFault(t, faultWorker(t), "--workers", "1", "--slots", "1", "--drain-timeout", "10m", "--queue-timeout", "10m")
	c.waitWorkers(1)
	conn := dialLang(t, c.Addr)
	ended := make(chan outcome, 2)
	go func() { ended <- callIo(t.Context(), conn, "running", callBound) }()
	c.waitTaken(1)
	go func() { ended <- callIo(t.Context(), conn, "queued", callBound) }()
	c.waitMetric("cabrank_queue_length", 1)

	c.ended = true
	c.Signal(syscall.SIGTERM)
	c.wait(patience, "the drain", func() bool { return len(c.LogLines("stopping")) > 0 })
	c.Signal(syscall.SIGINT)
	for range 2 {
		got := <-ended
		wantStatus(t, got.err, codes.Unavailable, "cabrank: shutting down")
	}
	if code := c.ExitCode(stopBound); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	c.WaitNoneLeft(3 * time.Second)
}

// SIGTERM in the first milliseconds, while listeners, keeper and workers come
// up one after the other. Only before cabrank has opened anything may the signal
// itself be the end.
func TestStopInTheFirstMilliseconds(t *testing.T) {
	const seed, moments = 7, 20
	random := rand.New(rand.NewPCG(seed, 0))
	for range moments {
		wait := time.Duration(random.Int64N(int64(60 * time.Millisecond)))
		args := slices.Concat([]string{"run", "--listen", "127.0.0.1:0", "--probes", "127.0.0.1:0", "--metrics", "127.0.0.1:0",
			"--workers", "3", "--transport", "unix", "--"}, faultWorker(t))
		p := StartProcess(t, nil, cabrankBinary(t), args...)
		<-time.After(wait) // the moment is what is tested
		p.Signal(syscall.SIGTERM)
		if code := p.ExitCode(stopEnd); code != 0 && p.Log() != "" {
			t.Errorf("exit code %d after SIGTERM at %v:\n%s", code, wait, p.Log())
		}
		p.WaitNoneLeft(3 * time.Second)
	}
}
