//go:build real || soak

package workers_test

import (
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// suspend keeps a cabrank from running for so long, as a paused container or a
// debugger does.
func suspend(t *testing.T, c *harness.Cabrank, d time.Duration) {
	t.Helper()
	c.Signal(syscall.SIGSTOP)
	over := time.Now().Add(d)
	testkit.Eventually(t, harness.Patience, "the end of the suspension", func() bool { return time.Now().After(over) })
	c.Signal(syscall.SIGCONT)
}

// R6: time in which cabrank did not run is not time in which a worker hung.
func TestSuspensionIsNoHang(t *testing.T) {
	const timeout, run = 4 * time.Second, 7 * time.Second
	threads := strconv.Itoa(hangThreads)
	env := append(harness.LangEnv(t), "CABRANK_HANG_TIMEOUT="+timeout.String(), "CABRANK_STREAM_SLOTS="+threads)
	args := slices.Concat([]string{"--workers", "1", "--slots", threads, "--"}, hanging(t, "python"))
	c := harness.StartCabrankEnv(t, env, args...)
	c.WaitReady(harness.LangBound)
	conn := harness.Dial(t, c.Addr)
	var callers sync.WaitGroup
	for range hangThreads {
		callers.Go(func() {
			harness.CallIo(t.Context(), conn, "slow", run).WantOK(t)
		})
	}
	c.WaitLog(harness.Patience, "worker is silent and gets no new calls")
	suspend(t, c, timeout)
	callers.Wait()
	if killed := c.LogLines("worker hung, killed"); len(killed) > 0 {
		t.Errorf("killed for time in which nobody could look at it: %v", killed)
	}
	c.Stop()
}

// Nor is it part of its boot.
func TestSuspensionIsNoBoot(t *testing.T) {
	const limit, boot = 4 * time.Second, 2 * time.Second
	args := append([]string{"--workers", "1", "--boot-timeout", limit.String(), "--"}, harness.FaultWorker(t, "-boot", boot.String())...)
	c := harness.StartCabrank(t, args...)
	testkit.Eventually(t, harness.Patience, "the worker's process", func() bool { return len(c.Family()) > 2 })
	suspend(t, c, limit+time.Second)
	c.WaitReady(harness.Patience)
	if killed := c.LogLines("worker killed before it was ready"); len(killed) > 0 {
		t.Errorf("killed for time in which nobody could look at it: %v", killed)
	}
	c.Stop()
}
