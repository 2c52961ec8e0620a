//go:build real || soak

package workers_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/test/real/harness"
)

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
			if took := time.Since(began); took < time.Second {
				t.Errorf("replaced after %v, hang_timeout is 1s", took)
			}
			harness.CallIo(t.Context(), conn, "waits", 2500*time.Millisecond).WantOK(t)
			if got := c.Metric("cabrank_worker_restarts_total", "cause", "hung"); got != 1 {
				t.Errorf("%v restarts of hung workers, want 1", got)
			}
			c.Stop()
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
	if slow.Err != nil {
		t.Fatal(slow.Err)
	}
	line := c.WaitLog(harness.Patience, "worker is silent and gets no new calls")
	c.WaitLog(harness.Patience, "worker speaks again")
	load.WaitAnswered(t, slow.Worker, 60)
	load.WantNoFailure(t)
	if seen := readiness.Stop(); len(seen) != 1 {
		t.Errorf("readiness by status: %v, want only 200", seen)
	}
	for _, silent := range c.LogLines("worker is silent and gets no new calls") {
		if silent.Text("worker") != slow.Worker {
			t.Errorf("suspect is %v, but the slow call was at %s", silent, slow.Worker)
		}
	}
	t.Log(line)
	c.Stop()
}
