//go:build soak

package chaos_test

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/test/real/harness"
)

// The long form of the chaos test: 10 minutes. SOAK_TIME does not change it, for
// the numbers of events belong to it; CHAOS_SEED repeats a run.
func TestSoakChaos(t *testing.T) {
	runChaos(t, chaosPlan{
		seed:   harness.RandomSeed(t, uint64(time.Now().UnixNano())),
		rounds: 5, calm: 12 * time.Second, planned: 38 * time.Second, storm: 70 * time.Second,
		recycle: 500, names: true,
		changes:      map[changeKind]int{changeRoll: 2, changeHangUp: 1, changeScale: 2, changeReload: 2, changeBadFile: 1, changeDrain: 1, changeNames: 2},
		stormChanges: map[changeKind]int{changeRoll: 3, changeHangUp: 1, changeScale: 2, changeReload: 3, changeDrain: 1, changeNames: 3},
		faults:       map[faultKind]int{faultKill: 9, faultStop: 2, faultStopKill: 1},
		limits:       chaosLimits{plannedP99: 1.2, stormP99: 1.5, detection: time.Second, afterwards: time.Second},
	})
}

// The same with workers in Ruby, in a round of two minutes. What depends on time
// has the limits of the short form: an interpreter that starts takes the CPU from
// those that serve.
func TestSoakChaosRuby(t *testing.T) {
	runChaos(t, chaosPlan{
		seed:   harness.RandomSeed(t, uint64(time.Now().UnixNano())),
		script: "chaos_worker.rb", tcp: true,
		rounds: 1, calm: 20 * time.Second, planned: 40 * time.Second, storm: time.Minute,
		recycle: 500, names: true,
		changes:      map[changeKind]int{changeRoll: 2, changeHangUp: 1, changeScale: 2, changeReload: 1, changeDrain: 1},
		stormChanges: map[changeKind]int{changeRoll: 2, changeHangUp: 1, changeScale: 2, changeReload: 1, changeDrain: 1},
		faults:       map[faultKind]int{faultKill: 6, faultStop: 1, faultStopKill: 1},
		limits:       chaosLimits{plannedP99: 12, stormP99: 15, stall: 3 * time.Second, detection: 10 * time.Second, afterwards: 10 * time.Second},
	})
}

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
