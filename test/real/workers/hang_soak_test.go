//go:build soak

package workers_test

import (
	"testing"
	"time"
)

// R6: a worker all of whose threads hang gets no new calls after half of
// hang_timeout and is replaced within one and a half, whatever deadlines its
// callers have.
func TestSoakHungWorkers(t *testing.T) { //nolint:tparallel // beside each other, not beside tests that are judged by their time
	const timeout = 4 * time.Second
	for _, lang := range []string{"ruby", "python", "node"} {
		for _, deadline := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 5 * time.Second, 20 * time.Second, 0} {
			h := hangCase{lang, deadline}
			t.Run(h.String(), func(t *testing.T) {
				t.Parallel()
				seen := h.hang(t, timeout)
				if seen.closed == 0 || seen.closed > timeout/2 || seen.replaced > timeout*3/2 {
					t.Errorf("no new calls after %v, replaced after %v; hang_timeout is %v", seen.closed, seen.replaced, timeout)
				}
			})
		}
	}
}
