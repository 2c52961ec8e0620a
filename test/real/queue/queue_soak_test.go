//go:build soak

package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit/oneslot"
)

// The bar of the queue at length: p99 at most 1.05 times that of a perfect
// queue. The slack is what a machine that does something else may cost.
func TestSoakQueue(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed+1), func(t *testing.T) { queueTrial(t, seed+1, 4000, 1.05, 10*time.Millisecond) })
	}
}

// The bar of an overload at length (R16): at least 60 % in time, of 71 % that
// the workers could do.
func TestSoakOverload(t *testing.T) {
	for seed := range uint64(2) {
		for _, busy := range []oneslot.WhenBusy{oneslot.Run, oneslot.Skip, oneslot.Refuse} {
			t.Run(fmt.Sprintf("%s, seed %d", busy, seed+1), func(t *testing.T) { overloadTrial(t, seed+1, 4000, busy, 0.6) })
		}
	}
}
