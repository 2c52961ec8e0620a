//go:build soak

package chaos_test

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/test/real/harness"
)

// The short form of the chaos test. What measures time has ten times and more of
// the room that the long form gives, for a busy machine.
func TestChaos(t *testing.T) {
	runChaos(t, chaosPlan{
		seed:   harness.RandomSeed(t, 5),
		rounds: 1, calm: 3 * time.Second, planned: 7 * time.Second, storm: 10 * time.Second,
		recycle: 150, names: true,
		changes:      map[changeKind]int{changeRoll: 1, changeScale: 2, changeReload: 1, changeBadFile: 1, changeDrain: 1, changeNames: 1},
		stormChanges: map[changeKind]int{changeRoll: 1, changeHangUp: 1, changeScale: 2, changeReload: 1, changeNames: 1},
		faults:       map[faultKind]int{faultKill: 4, faultStop: 1, faultStopKill: 1},
		limits:       chaosLimits{plannedP99: 12, stormP99: 15, stall: 3 * time.Second, detection: 10 * time.Second, afterwards: 10 * time.Second},
	})
}
