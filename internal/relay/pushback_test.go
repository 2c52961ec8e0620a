package relay

import (
	"strconv"
	"testing"
	"time"
)

// A pushback is never more than 32 bits.
func TestLongestPushback(t *testing.T) {
	if got := string(appendCeil(nil, 1<<62, time.Millisecond)); got != strconv.Itoa(1<<31-1) {
		t.Errorf("a pushback of centuries: %s", got)
	}
}
