//go:build soak

package operations_test

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/test/real/harness"
)

// SIGTERM at 500 random moments; CHAOS_SEED repeats a run.
func TestSoakStopAtAnyMoment(t *testing.T) {
	stopAtAnyMoment(t, harness.RandomSeed(t, uint64(time.Now().UnixNano())), 1+500/len(stopMoments(t)))
}
