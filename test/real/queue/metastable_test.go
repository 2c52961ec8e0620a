//go:build real || soak

package queue_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/test/real/harness"
)

// perConnection is how many callers share a connection.
const perConnection = 20

// startLoop starts callers in closed loops, with deadlines of a second. 70 % of the calls
// sleep for 30 ms, the others compute for a few.
func startLoop(t *testing.T, c *harness.Cabrank, callers int) *harness.Loop {
	t.Helper()
	var calls []harness.LoopCall
	for range callers / perConnection {
		calls = append(calls, harness.Working(workpb.NewWorkClient(harness.Dial(t, c.Addr)), mixedCall))
	}
	return harness.StartLoop(t, perConnection, calls...)
}

func mixedCall(ctx context.Context, client workpb.WorkClient) (err error) {
	limited, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if rand.Float64() < 0.7 {
		_, err = client.Io(limited, &workpb.IoRequest{Millis: 30})
	} else {
		_, err = client.Cpu(limited, &workpb.CpuRequest{N: 14})
	}
	return err
}

// during counts for so long.
func during(l *harness.Loop, d time.Duration) (answered, failed int) {
	a, f := l.Sums()
	<-time.After(d)
	answered, failed = l.Sums()
	return answered - a, failed - f
}

// disturbing keeps two of three workers from working for a moment.
type disturbing func(c *harness.Cabrank, pids []int)

// stopped stops them for so long.
func stopped(d time.Duration) disturbing {
	return func(c *harness.Cabrank, pids []int) {
		for _, pid := range pids {
			c.SignalTo(pid, syscall.SIGSTOP)
		}
		<-time.After(d)
		for _, pid := range pids {
			c.SignalTo(pid, syscall.SIGCONT)
		}
	}
}

// killed kills them and waits until others serve in their places.
func killed(c *harness.Cabrank, pids []int) {
	for _, pid := range pids {
		c.SignalTo(pid, syscall.SIGKILL)
	}
	c.Wait(harness.Patience, "other workers", func() bool { return len(c.LogLines("worker ready")) == 3+len(pids) })
}

// recovers holds cabrank to this: when the disturbance is over the callers are
// served as before. What the workers can do in that time is the machine's business;
// that hardly a call fails is cabrank's.
func recovers(t *testing.T, lang string, callers int, by disturbing, watched time.Duration) {
	t.Helper()
	example := harness.ReadLangExample(t, lang)
	args := slices.Concat([]string{"--workers", "3", "--slots", "5", "--min-ready", "3", "--"}, example.Worker)
	c := harness.StartCabrankEnv(t, append(harness.LangEnv(t), "POOL_SIZE=5"), args...)
	c.WaitReady(harness.LangBound)
	c.WaitWorkers(3)
	var pids []int
	for _, worker := range []string{"worker-1", "worker-2"} {
		pids = append(pids, c.ReadyPIDs(worker)[0])
	}
	load := startLoop(t, c, callers)
	c.Wait(harness.Patience, "calls", func() bool { answered, _ := load.Sums(); return answered > 10*callers })
	answeredBefore, failedBefore := during(load, 2*time.Second)
	_, begun := load.Sums()
	by(c, pids)
	_, lost := load.Sums()
	answered2, failed2 := during(load, 2*time.Second)
	answered, failed := during(load, watched)
	load.Stop()
	t.Logf("%s, %d callers: before %d answered, %d failed; %d failed meanwhile; 2 s after %d, %d; then %v: %d, %d; %v",
		lang, callers, answeredBefore, failedBefore, lost-begun, answered2, failed2, watched, answered, failed, load.Failed())
	// On a machine on which calls are late anyway as many may be so again, twice over.
	late := 2 * float64(failedBefore) / float64(max(1, answeredBefore+failedBefore))
	if float64(failed) > (1./50+late)*float64(answered+failed) {
		t.Errorf("after the disturbance %d of %d calls failed in %v: %v", failed, answered+failed, watched, load.Failed())
	}
}
