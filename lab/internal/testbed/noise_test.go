package testbed

import (
	"testing"
	"time"
)

// What this process burns is not noise.
func TestNoise(t *testing.T) {
	n := StartNoise()
	if !n.known {
		t.Skip("this machine tells nothing of who uses it")
	}
	before, own := n.own, n.own
	for time.Since(n.began) < 200*time.Millisecond || own-before < 100*time.Millisecond {
		_, own, _ = usedByAll()
	}
	cores, known := n.Cores()
	if !known || cores < 0 || cores > float64(Cores()) {
		t.Errorf("noise %v (%t), own %v", cores, known, own-before)
	}
	if all, _, _ := usedByAll(); all-n.busy < own-before-time.Duration(Cores())*20*time.Millisecond {
		t.Errorf("all have used %v, this process %v", all-n.busy, own-before)
	}
}
