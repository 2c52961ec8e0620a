//go:build soak

package real_test

import (
	"testing"
	"time"
)

// The long form of the chaos test: 10 minutes. SOAK_TIME does not change it, for
// the numbers of events belong to it; CHAOS_SEED repeats a run.
func TestSoakChaos(t *testing.T) {
	runChaos(t, chaosPlan{
		seed:   chaosSeed(t, uint64(time.Now().UnixNano())),
		rounds: 5, calm: 12 * time.Second, planned: 36 * time.Second, storm: 72 * time.Second,
		recycle: 3000,
		faults:  map[faultKind]int{faultKill: 9, faultStop: 2, faultStopKill: 1},
		limits:  chaosLimits{plannedP99: 1.2, stormP99: 1.5, detection: time.Second, afterwards: time.Second},
	})
}
