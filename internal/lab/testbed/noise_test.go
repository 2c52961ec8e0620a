package testbed

import (
	"testing"
	"time"
)

// What this process burns is not noise.
func TestNoise(t *testing.T) {
	n := StartNoise()
	burnt := 0
	for time.Since(n.began) < 200*time.Millisecond {
		burnt++
	}
	before := n.own
	cores, known := n.Cores()
	_, own, _ := usedByAll()
	if !n.known {
		t.Skip("this machine tells nothing of who uses it")
	}
	if !known || burnt == 0 || cores < 0 || cores > float64(Cores()) || own-before < 20*time.Millisecond {
		t.Errorf("noise %v (%t), own %v", cores, known, own-before)
	}
	if all, _, _ := usedByAll(); all-n.busy < own-before-time.Duration(Cores())*20*time.Millisecond {
		t.Errorf("all have used %v, this process %v", all-n.busy, own-before)
	}
}
