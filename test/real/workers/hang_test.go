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
	"testing"
	"time"

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
