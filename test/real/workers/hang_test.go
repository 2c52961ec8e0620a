//go:build real || soak

package workers_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// hangThreads is how many threads, and slots, the worker has.
const hangThreads = 2

// withoutHealth is the worker in Python without a health service, holdsGIL the same if calls
// hold Python's one lock, and asyncioWithoutHealth one whose handlers need no thread.
const (
	withoutHealth        = "python without health"
	holdsGIL             = "python without health that holds the GIL"
	asyncioWithoutHealth = "asyncio without health"
)

// hangCase is a worker all of whose threads hang, and how long its callers wait.
type hangCase struct {
	lang     string
	deadline time.Duration // 0: none
}

func (h hangCase) String() string {
	if h.deadline == 0 {
		return h.lang + " without deadlines"
	}
	return fmt.Sprintf("%s with deadlines of %v", h.lang, h.deadline)
}

// hanging is the command of a worker in which an Io call of a minute hangs.
func hanging(t *testing.T, lang string) []string {
	t.Helper()
	folder := filepath.Join(harness.Root(t), "test", "real", "workers", "testdata")
	switch lang {
	case "node":
		return []string{"node", filepath.Join(folder, "hanging_worker.js")}
	case withoutHealth:
		return []string{"python3", filepath.Join(folder, "no_health_worker.py")}
	case holdsGIL:
		return []string{"env", "HOLD_GIL=1", "python3", filepath.Join(folder, "no_health_worker.py")}
	case asyncioWithoutHealth:
		return []string{"python3", filepath.Join(folder, "no_health_asyncio.py")}
	}
	return harness.ReadLangExample(t, lang).Worker
}

// startHanging starts a worker that hangs where it is asked to, with as many slots as
// threads.
func startHanging(t *testing.T, lang string, timeout time.Duration) *harness.Cabrank {
	t.Helper()
	threads := strconv.Itoa(hangThreads)
	env := append(harness.LangEnv(t), "CABRANK_HANG_TIMEOUT="+timeout.String(), "POOL_SIZE="+threads, "RAILS_MAX_THREADS="+threads)
	args := slices.Concat([]string{"--workers", "1", "--slots", threads, "--transport", "unix", "--"}, hanging(t, lang))
	c := harness.StartCabrankEnv(t, env, args...)
	c.WaitReady(harness.LangBound)
	return c
}

// hangCaller makes one call after the other that runs for so long, until ctx ends.
func hangCaller(ctx context.Context, t *testing.T, addr string, run, deadline time.Duration) {
	t.Helper()
	conn := harness.Dial(t, addr)
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for ctx.Err() == nil {
		limited, cancel := ctx, context.CancelFunc(func() {})
		if deadline > 0 {
			limited, cancel = context.WithTimeout(ctx, deadline)
		}
		harness.CallIo(limited, conn, "hangs", run)
		cancel()
		<-pause.C
	}
}

// hangTimes is when a worker got no new calls any more, and was replaced, after the
// first call that hung.
type hangTimes struct{ closed, replaced time.Duration }

// hang has all threads of a worker hang, with more callers than threads, until it
// is replaced, and holds that the next one serves. R6: what callers do with their
// calls makes no difference.
func (h hangCase) hang(t *testing.T, timeout time.Duration) (seen hangTimes) {
	t.Helper()
	c := startHanging(t, h.lang, timeout)
	conn := harness.Dial(t, c.Addr)
	harness.CallIo(t.Context(), conn, "good", time.Millisecond).WantOK(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var callers sync.WaitGroup
	began := time.Now()
	for range 2 * hangThreads {
		callers.Go(func() { hangCaller(ctx, t, c.Addr, time.Minute, h.deadline) })
	}
	c.WaitLog(harness.Patience, "worker hung, killed")
	leave()
	callers.Wait()
	seen.closed = c.FirstAfter(t, began, "worker is silent and gets no new calls")
	seen.replaced = c.FirstAfter(t, began, "worker hung, killed")
	killed := c.LogLines("worker hung, killed")[0]
	t.Logf("no new calls after %v, replaced after %v: %v", seen.closed, seen.replaced, killed)
	if killed.Text("calls") == "0" && killed.Text("given_up") == "0" || killed.Text("silent") == "0s" || !strings.HasSuffix(killed.Text("method"), "/Io") {
		t.Errorf("the log does not tell why: %v", killed)
	}
	harness.CallIo(t.Context(), conn, "good", time.Millisecond).WantOK(t)
	c.Stop()
	return seen
}

// impatient has workers asked for their health many times while a call runs,
// and has hang_timeout pass in the shortest time that is allowed.
func impatient(t *testing.T) []string {
	t.Helper()
	return append(harness.LangEnv(t), "HEALTH_CHECK_INTERVAL=200ms", "HEALTH_CHECK_TIMEOUT=300ms", "CABRANK_HANG_TIMEOUT=1s")
}

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
	killed := c.LogLines("worker hung, killed")
	testkit.Want(t, len(killed) == 0, "killed for time in which nobody could look at it: %v", killed)
}

// Nor is it part of its boot.
func TestSuspensionIsNoBoot(t *testing.T) {
	const limit, boot = 4 * time.Second, 2 * time.Second
	args := append([]string{"--workers", "1", "--boot-timeout", limit.String(), "--"}, harness.FaultWorker(t, "-boot", boot.String())...)
	c := harness.StartCabrank(t, args...)
	testkit.Eventually(t, harness.Patience, "the worker's process", func() bool { return len(c.Family()) > 2 })
	suspend(t, c, limit+time.Second)
	c.WaitReady(harness.Patience)
	killed := c.LogLines("worker killed before it was ready")
	testkit.Want(t, len(killed) == 0, "killed for time in which nobody could look at it: %v", killed)
}

// R6: a worker whose only thread waits for ever hangs: it neither says anything
// nor uses its CPU. It is replaced, and only it. The run that ended with it was
// seen: a call of the same method has three times as long the next time.
func TestHungWorkerIsReplaced(t *testing.T) {
	for _, lang := range []string{"python", "ruby"} {
		t.Run(lang, func(t *testing.T) {
			args := slices.Concat([]string{"--workers", "1", "--slots", "1", "--transport", "unix", "--"}, harness.ReadLangExample(t, lang).Worker)
			c := harness.StartCabrankEnv(t, append(impatient(t), "POOL_SIZE=1"), args...)
			c.WaitReady(harness.LangBound)
			conn := harness.Dial(t, c.Addr)
			began := time.Now()
			hung := harness.CallIo(t.Context(), conn, "hangs", time.Minute)
			harness.WantStatus(t, hung.Err, codes.Unavailable, "cabrank: worker lost")
			took := time.Since(began)
			testkit.Want(t, took >= time.Second, "replaced after %v, hang_timeout is 1s", took)
			harness.CallIo(t.Context(), conn, "waits", 2500*time.Millisecond).WantOK(t)
			testkit.Equal(t, c.Metric("cabrank_worker_restarts_total", "cause", "hung"), 1, "restarts of hung workers")
		})
	}
}

// R5, R6: a worker all of whose threads hang is replaced, whatever its callers do:
// each call that hangs is given up long before hang_timeout, is refused, or waits. The
// times are in `make soak`.
func TestHungWorkerIsReplacedDespiteDeadlines(t *testing.T) { //nolint:tparallel // beside each other, not beside tests that are judged by their time
	for _, h := range []hangCase{
		{"ruby", 500 * time.Millisecond}, {"ruby", 2 * time.Second}, {"ruby", 0},
		{"python", 500 * time.Millisecond}, {"python", 2 * time.Second},
		{"node", 2 * time.Second}, {"node", 0},
	} {
		t.Run(h.String(), func(t *testing.T) {
			t.Parallel()
			if seen := h.hang(t, 2*time.Second); seen.closed == 0 || seen.closed > seen.replaced {
				t.Errorf("no new calls after %v, replaced after %v", seen.closed, seen.replaced)
			}
		})
	}
}

// R5, R6: workers whose calls all end, but later than their callers wait, answer
// nobody. They are slow, and nobody is replaced.
func TestSlowWorkerIsNotHung(t *testing.T) { //nolint:tparallel // beside each other, not beside tests that are judged by their time
	const timeout, run, deadline = 4 * time.Second, 2 * time.Second, time.Second
	for _, lang := range []string{"ruby", "python", "node"} {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			c := startHanging(t, lang, timeout)
			ctx, leave := context.WithTimeout(t.Context(), 3*timeout)
			defer leave()
			var callers sync.WaitGroup
			for range 2 * hangThreads {
				callers.Go(func() { hangCaller(ctx, t, c.Addr, run, deadline) })
			}
			callers.Wait()
			for _, msg := range []string{"worker hung, killed", "worker ended"} {
				if lines := c.LogLines(msg); len(lines) > 0 {
					t.Errorf("%d times %q, the first %v", len(lines), msg, lines[0])
				}
			}
			conn := harness.Dial(t, c.Addr)
			c.Wait(harness.Patience, "a thread that is free again", func() bool {
				return harness.CallIo(t.Context(), conn, "good", time.Millisecond).Err == nil
			})
			c.Stop()
		})
	}
}

// R6: a worker that is silent although its calls should long be over gets no
// new ones while the other one speaks, and is back with its first byte. This
// one was said to have two slots and has one thread: it answers nothing else
// while a call waits in it.
func TestSilentWorkerIsSuspect(t *testing.T) {
	const slots, long = 2, 6 * time.Second
	args := slices.Concat([]string{"--workers", "2", "--min-ready", "2", "--slots", strconv.Itoa(slots), "--transport", "unix", "--"}, harness.ReadLangExample(t, "python").Worker)
	c := harness.StartCabrankEnv(t, append(harness.LangEnv(t), "POOL_SIZE=1"), args...)
	c.WaitReady(harness.LangBound)
	readiness := c.WatchProbe("readiness")
	load := harness.StartLoad(t, c.Addr, 3, harness.ShortWork)
	load.WaitAnswered(t, "worker-1", 50)
	load.WaitAnswered(t, "worker-2", 50)
	slow := harness.CallIo(t.Context(), harness.Dial(t, c.Addr), "slow", long)
	testkit.Need(t, slow.Err == nil, "%v", slow.Err)
	line := c.WaitLog(harness.Patience, "worker is silent and gets no new calls")
	c.WaitLog(harness.Patience, "worker speaks again")
	load.WaitAnswered(t, slow.Worker, 60)
	load.WantNoFailure(t)
	seen := readiness.Stop()
	testkit.Want(t, len(seen) == 1, "readiness by status: %v, want only 200", seen)
	for _, silent := range c.LogLines("worker is silent and gets no new calls") {
		testkit.Want(t, silent.Text("worker") == slow.Worker, "suspect is %v, but the slow call was at %s", silent, slow.Worker)
	}
	t.Log(line)
}
