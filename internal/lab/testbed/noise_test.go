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

func TestNoiseMark(t *testing.T) {
	for _, tc := range []struct {
		cores   float64
		machine int
		want    string
	}{{0.2, 2, ""}, {0.21, 2, "others used 0.21 of 2 cores"}, {1, 0, ""}, {3, 64, ""}} {
		if got := NoiseMark(tc.cores, tc.machine); got != tc.want {
			t.Errorf("%v of %d: got %q, want %q", tc.cores, tc.machine, got, tc.want)
		}
	}
}
