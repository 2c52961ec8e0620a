//go:build real

package real_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// impatient has workers asked for their health many times while a call runs,
// and has hang_timeout pass in the shortest time that is allowed.
func impatient(t *testing.T) []string {
	t.Helper()
	return append(langEnv(t), "HEALTH_CHECK_INTERVAL=200ms", "HEALTH_CHECK_TIMEOUT=100ms", "CABRANK_HANG_TIMEOUT=1s")
}

// R6: workers with one thread, busy with calls that take longer than their
// health checks and than hang_timeout, are busy and not sick.
func TestSaturationIsNotSickness(t *testing.T) {
	args := []string{"--workers", "2", "--slots", "1", "--min-ready", "2", "--transport", "unix", "--"}
	c := StartCabrankEnv(t, impatient(t), append(args, mixedWorkers(t)...)...)
	c.WaitReady(langBound)
	saturate(t, c, 4, 1500*time.Millisecond, 8*time.Second).wantNobodySick(t, c)
	c.Stop()
}

// R6: a worker whose only thread waits for ever hangs: it neither says anything
// nor uses its CPU. It is replaced, and only it. The run that ended with it was
// seen: a call of the same method has three times as long the next time.
func TestHungWorkerIsReplaced(t *testing.T) {
	for _, lang := range []string{"python", "ruby"} {
		t.Run(lang, func(t *testing.T) {
			args := slices.Concat([]string{"--workers", "1", "--slots", "1", "--transport", "unix", "--"}, readLangExample(t, lang).worker)
			c := StartCabrankEnv(t, append(impatient(t), "POOL_SIZE=1"), args...)
			c.WaitReady(langBound)
			conn := dialLang(t, c.Addr)
			began := time.Now()
			hung := callIo(t.Context(), conn, "hangs", time.Minute)
			wantStatus(t, hung.err, codes.Unavailable, "cabrank: worker lost")
			if took := time.Since(began); took < time.Second {
				t.Errorf("replaced after %v, hang_timeout is 1s", took)
			}
			if got := callIo(t.Context(), conn, "waits", 2500*time.Millisecond); got.err != nil {
				t.Errorf("a call of the same method that takes 2.5 s: %v", got.err)
			}
			if got := c.metric("cabrank_worker_restarts_total", "cause", "hung"); got != 1 {
				t.Errorf("%v restarts of hung workers, want 1", got)
			}
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
	args := slices.Concat([]string{"--workers", "2", "--min-ready", "2", "--slots", strconv.Itoa(slots), "--transport", "unix", "--"}, readLangExample(t, "python").worker)
	c := StartCabrankEnv(t, append(langEnv(t), "POOL_SIZE=1"), args...)
	c.WaitReady(langBound)
	readiness := c.watchProbe("readiness")
	load := startLoad(t, c.Addr, 3, shortWork)
	load.waitAnswered(t, "worker-1", 50)
	load.waitAnswered(t, "worker-2", 50)
	slow := callIo(t.Context(), dialLang(t, c.Addr), "slow", long)
	if slow.err != nil {
		t.Fatal(slow.err)
	}
	line := c.WaitLog(patience, "worker is silent and gets no new calls")
	c.WaitLog(patience, "worker speaks again")
	load.waitAnswered(t, slow.worker, 60)
	if failed := failures(load.stop()); len(failed) > 0 {
		t.Errorf("%d calls failed, the first with %v", len(failed), failed[0].err)
	}
	if seen := readiness.stop(); len(seen) != 1 {
		t.Errorf("readiness by status: %v, want only 200", seen)
	}
	for _, silent := range c.LogLines("worker is silent and gets no new calls") {
		if silent.Text("worker") != slow.worker {
			t.Errorf("suspect is %v, but the slow call was at %s", silent, slow.worker)
		}
	}
	t.Log(line)
	c.Stop()
}
