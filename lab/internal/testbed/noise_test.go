package testbed

import (
	"testing"
	"time"
)

// What this process burns is not noise.
func TestNoise(t *testing.T) {
	began := time.Now()
	busy, before, known := usedByAll()
	if !known {
		t.Skip("this machine tells nothing of who uses it")
	}
	noise, own := StartNoise(), before
	for time.Since(began) < 200*time.Millisecond || own-before < 100*time.Millisecond {
		_, own, _ = usedByAll()
	}
	machine := ThisMachine().Cores
	if cores := noise(); cores < 0 || cores > float64(machine) {
		t.Errorf("noise %v, own %v", cores, own-before)
	}
	if all, _, _ := usedByAll(); all-busy < own-before-time.Duration(machine)*20*time.Millisecond {
		t.Errorf("all have used %v, this process %v", all-busy, own-before)
	}
}
