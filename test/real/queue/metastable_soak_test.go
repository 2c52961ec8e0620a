//go:build soak

package queue_test

import (
	"fmt"
	"testing"
	"time"
)

// The same with more callers than half of a deadline serves, in Ruby, and after
// workers that were killed.
func TestSoakDisturbanceIsOver(t *testing.T) {
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
