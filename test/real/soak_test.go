//go:build soak

package real_test

import (
	"context"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/demo/demopb"
	"github.com/cabrank/cabrank/internal/testkit"
)

// soakTime is how long the soak runs; SOAK_TIME changes it.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("SOAK_TIME")
	if text == "" {
		return 2 * time.Minute
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("SOAK_TIME: %v", err)
	}
	return d
}

// soakTally is what the callers of a soak have seen.
type soakTally struct {
	mu       sync.Mutex
	took     []time.Duration // of calls that succeeded
	failures map[string]int  // by message
}

func (s *soakTally) count(took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.took = append(s.took, took)
		return
	}
	if status.Code(err) == codes.Unavailable {
		s.failures[status.Convert(err).Message()]++
		return
	}
	s.failures[err.Error()]++
}

// Workers are killed every five seconds under steady load. The only calls that
// fail are those that a killed worker had taken; memory does not grow; latency
// is printed. Each kill loses at most the calls in flight on that worker.
func TestSoakKilledWorkers(t *testing.T) {
	const workers, slots, callers = 3, 4, 10
	c := StartCabrank(t, "--workers", strconv.Itoa(workers), "--slots", strconv.Itoa(slots), "--transport", "unix",
		"--", cabrankBinary(t), "demo", "worker", "--work", "2ms")
	c.WaitReady(10 * time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), soakTime(t))
	defer cancel()
	tally := &soakTally{failures: make(map[string]int)}
	var running sync.WaitGroup
	for range callers {
		running.Go(func() { soakCaller(ctx, t, c.Addr, tally) })
	}
	before := rssKiB(t, c.PID)
	kills := soakKiller(ctx, t, c, workers)
	running.Wait()
	after := rssKiB(t, c.PID)

	slices.Sort(tally.took)
	lost := tally.failures["cabrank: worker lost"]
	t.Logf("%d calls, %d kills, %d lost, p50 %v, p99 %v, max %v; memory %d KiB, then %d KiB", len(tally.took), kills, lost,
		tally.took[len(tally.took)/2], tally.took[len(tally.took)*99/100], tally.took[len(tally.took)-1], before, after)
	delete(tally.failures, "cabrank: worker lost")
	if len(tally.failures) > 0 {
		t.Errorf("calls failed otherwise: %v", tally.failures)
	}
	if lost > kills*slots {
		t.Errorf("%d calls lost by %d kills of workers with %d slots", lost, kills, slots)
	}
	if after > before+16<<10 {
		t.Errorf("memory grew from %d to %d KiB", before, after)
	}
	c.Stop()
}

func soakCaller(ctx context.Context, t *testing.T, addr string, tally *soakTally) {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	greeter := demopb.NewGreeterClient(conn)
	for ctx.Err() == nil {
		began := time.Now()
		_, err := greeter.SayHello(context.WithoutCancel(ctx), &demopb.HelloRequest{Name: "soak"})
		tally.count(time.Since(began), err)
	}
}

// soakKiller kills the workers in turn, each when all are back: one that always
// died soon would be restarted later and later, and a dead one cannot be killed.
func soakKiller(ctx context.Context, t *testing.T, c *Cabrank, workers int) (kills int) {
	t.Helper()
	every := time.NewTicker(5 * time.Second)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return kills
		case <-every.C:
		}
		testkit.Eventually(t, 30*time.Second, "the return of the killed worker", func() bool {
			return ctx.Err() != nil || c.metric("cabrank_worker_state", "state", "ready") == float64(workers)
		})
		if ctx.Err() != nil {
			return kills
		}
		victim := nextVictim(c.LogLines("worker ready"))
		pid, err := strconv.Atoi(victim.Text("pid"))
		if err != nil {
			t.Errorf("pid of %v: %v", victim, err)
			return kills
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Errorf("kill %d: %v", pid, err)
		}
		kills++
	}
}

// nextVictim returns the line of the worker that has been ready for longest,
// by the last readiness of each.
func nextVictim(ready []LogLine) (victim LogLine) {
	seen := make(map[string]bool)
	for _, line := range slices.Backward(ready) {
		if name := line.Text("worker"); !seen[name] {
			seen[name], victim = true, line
		}
	}
	return victim
}

// R14 at length: 500 cancels a second for a minute beside steady callers on a
// real Node worker. SOAK_TIME does not change it.
func TestSoakCancels(t *testing.T) { cancelStorm(t, time.Minute) }
