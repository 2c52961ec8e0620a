//go:build real || soak

package languages_test

import (
	"fmt"
	"testing"
)

// A call that may have run is never sent again because of what the answer says: not
// when a handler passes on the words by which a worker refuses calls (R1). The long
// form is in `make soak`.
func TestNestedRefusalsRunOnce(t *testing.T) {
	for _, lang := range []string{"ruby", "python"} {
		for _, inFlight := range []int{2 * nestedSlots, 4 * nestedSlots} {
			t.Run(fmt.Sprintf("%s, %d in flight", lang, inFlight), func(t *testing.T) {
				nestedRuns(t, lang, 500, inFlight)
			})
		}
	}
}
