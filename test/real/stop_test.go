//go:build real

package real_test

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// SIGTERM at 20 random moments. The seed is fixed, CHAOS_SEED gives another.
func TestStopAtAnyMoment(t *testing.T) {
	stopAtAnyMoment(t, chaosSeed(t, 20261121), 2)
}

// Each signal that asks to stop does, with exit code 0 and nothing left, the
// directory of the sockets included (R17, R19).
func TestEverySignalStops(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT} {
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
