//go:build real || soak

package operations_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

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
			if len(harness.FilesIn(t, runtime)) == 0 {
				t.Error("the sockets are not in XDG_RUNTIME_DIR")
			}
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
	if err != nil || reply.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("Health/Check during the delay: %v, %v; want NOT_SERVING", reply.GetStatus(), err)
	}
	if got := c.Probe("liveness"); got != http.StatusOK {
		t.Errorf("liveness during the delay: %d", got)
	}
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
