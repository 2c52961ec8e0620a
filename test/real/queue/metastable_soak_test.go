//go:build soak

package queue_test

import (
	"fmt"
	"testing"
	"time"
)

// Callers who wait for answers before they send more are not kept from them by the
// order in which the queue serves them: a disturbance is over when it is over. There are
// more callers than half of a deadline serves, too.
func TestDisturbanceIsOver(t *testing.T) {
	for _, lang := range []string{"python", "ruby"} {
		for _, callers := range []int{60, 120, 240} {
			for name, by := range map[string]disturbing{"stopped": stopped(1500 * time.Millisecond), "killed": killed} {
				t.Run(fmt.Sprintf("%s, %d callers, %s", lang, callers, name), func(t *testing.T) {
					recovers(t, lang, callers, by, 8*time.Second)
				})
			}
		}
	}
}
