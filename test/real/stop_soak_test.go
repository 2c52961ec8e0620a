//go:build soak

package real_test

import (
	"testing"
	"time"
)

// SIGTERM at 500 random moments; CHAOS_SEED repeats a run.
func TestSoakStopAtAnyMoment(t *testing.T) {
	stopAtAnyMoment(t, chaosSeed(t, uint64(time.Now().UnixNano())), 1+500/len(stopMoments(t)))
}
