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
		seed: chaosSeed(t, uint64(time.Now().UnixNano())),
		calm: time.Minute, planned: 0, storm: 360 * time.Second,
		faults: map[faultKind]int{faultKill: 42, faultStop: 8, faultStopKill: 4},
		limits: chaosLimits{plannedP99: 1.2, stormP99: 1.5, detection: time.Second, afterwards: time.Second},
	})
}
