//go:build soak

package queue_test

import (
	"testing"
	"time"
)

// Callers who wait for answers before they send more are not kept from them by the
// order in which the queue serves them: a disturbance is over when it is over.
func TestDisturbanceIsOver(t *testing.T) {
	recovers(t, "python", 60, stopped(1500*time.Millisecond), 4*time.Second)
}
