//go:build soak

package queue_test

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/test/real/oneslot"
)

// Workers of one slot at 70 % load: a call never gets to a worker that is busy,
// and waits about as long as in a perfect queue. The figures at length are in
// `make bench-queue`; this holds what a busy machine can hold.
func TestQueueIsNearlyPerfect(t *testing.T) { queueTrial(t, 1, 500, 1.5, time.Second) }

// At 140 % with deadlines nothing is begun in vain (R16), whatever a busy
// worker does with a call too many.
func TestOverloadIsWorkedInTime(t *testing.T) {
	for _, busy := range []oneslot.WhenBusy{oneslot.Queue, oneslot.Skip, oneslot.Refuse} {
		t.Run(string(busy), func(t *testing.T) { overloadTrial(t, 1, 800, busy, 0.35) })
	}
}
