//go:build real

package real_test

import (
	"testing"
	"time"
)

// The short form of the chaos test. What measures time has ten times and more of
// the room that the long form gives, for a busy machine.
func TestChaos(t *testing.T) {
	runChaos(t, chaosPlan{
		seed:   chaosSeed(t, 5),
		rounds: 1, calm: 3 * time.Second, planned: 6 * time.Second, storm: 12 * time.Second,
		recycle: 200,

		faults: map[faultKind]int{faultKill: 4, faultStop: 2, faultStopKill: 1},
		limits: chaosLimits{plannedP99: 12, stormP99: 15, detection: 10 * time.Second, afterwards: 10 * time.Second},
	})
}
