//go:build soak

package workers_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// R6: a worker all of whose calls hang gets no new ones after half of
// hang_timeout and is replaced within one and a half, whatever deadlines its
// callers have. Ruby has two threads more for each slot: calls that are given up
// have to take those first.
func TestSoakHungWorkers(t *testing.T) { //nolint:tparallel // beside each other, not beside tests that are judged by their time
	const timeout = 4 * time.Second
	for _, lang := range []string{"ruby", "python", "node", holdsGIL} {
		for _, deadline := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 5 * time.Second, 20 * time.Second, 0} {
			h := hangCase{lang, deadline}
			t.Run(h.String(), func(t *testing.T) {
				t.Parallel()
				seen := h.hang(t, timeout)
				var spare time.Duration
				if lang == "ruby" && deadline > 0 && deadline < timeout {
					spare = 2 * (deadline + time.Second) // a slot is a ghost for up to a second
				}
				testkit.Want(t, seen.closed != 0 && seen.closed <= timeout/2+spare && seen.replaced <= timeout*3/2+spare,
					"no new calls after %v, replaced after %v; hang_timeout is %v", seen.closed, seen.replaced, timeout)
			})
		}
	}
}

// R6: a Python worker without a health service, whose library answers the question from a
// thread of its own, is replaced as well, within two hang_timeouts.
func TestSoakHungWithoutHealth(t *testing.T) { //nolint:tparallel // beside each other, not beside tests that are judged by their time
	const timeout = 4 * time.Second
	for _, deadline := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 5 * time.Second, 0} {
		h := hangCase{withoutHealth, deadline}
		t.Run(h.String(), func(t *testing.T) {
			t.Parallel()
			seen := h.hang(t, timeout)
			testkit.Want(t, seen.closed >= timeout && seen.replaced <= timeout*5/2+deadline,
				"no new calls after %v, replaced after %v; hang_timeout is %v", seen.closed, seen.replaced, timeout)
		})
	}
}

// R6: such a worker is not replaced while it only waits: its calls come to their end, if
// slowly; or one waits for long, and a thread is free; or callers have left, and nobody calls.
func TestSoakWaitsWithoutHealth(t *testing.T) { //nolint:tparallel // beside each other, not beside tests that are judged by their time
	const timeout = 4 * time.Second
	// everySlot has each slot wait for so long, again and again.
	everySlot := func(wait time.Duration) func(*testing.T, *harness.Cabrank) {
		return func(t *testing.T, c *harness.Cabrank) {
			t.Helper()
			ctx, leave := context.WithTimeout(t.Context(), 4*timeout)
			defer leave()
			var callers sync.WaitGroup
			for range 2 * hangThreads {
				callers.Go(func() { hangCaller(ctx, t, c.Addr, wait, 0) })
			}
			callers.Wait()
		}
	}
	for name, test := range map[string]struct {
		lang string
		wait func(*testing.T, *harness.Cabrank)
	}{
		"every thread for 3 s": {withoutHealth, everySlot(3 * time.Second)},
		"asyncio for 10 s":     {asyncioWithoutHealth, everySlot(10 * time.Second)},
		"one thread for long": {withoutHealth, func(t *testing.T, c *harness.Cabrank) {
			t.Helper()
			harness.CallIo(t.Context(), harness.Dial(t, c.Addr), "waits", 3*timeout).WantOK(t)
		}},
		"callers have left": {withoutHealth, func(t *testing.T, c *harness.Cabrank) {
			t.Helper()
			ctx, leave := context.WithTimeout(t.Context(), time.Second)
			defer leave()
			var callers sync.WaitGroup
			for range 2 * hangThreads {
				callers.Go(func() { harness.CallIo(ctx, harness.Dial(t, c.Addr), "left", 2*time.Second) })
			}
			callers.Wait()
			<-time.After(3 * timeout)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startHanging(t, test.lang, timeout)
			test.wait(t, c)
			for _, msg := range []string{"worker is silent and gets no new calls", "worker hung, killed", "worker ended"} {
				if lines := c.LogLines(msg); len(lines) > 0 {
					t.Errorf("%d times %q, the first %v", len(lines), msg, lines[0])
				}
			}
			harness.CallIo(t.Context(), harness.Dial(t, c.Addr), "good", time.Millisecond).WantOK(t)
			c.Stop()
		})
	}
}
