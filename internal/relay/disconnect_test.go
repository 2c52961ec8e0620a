package relay

import (
	"testing"
	"time"
)

// The log has one line a minute for each reason, and says how many it has not
// said.
func TestPartingLog(t *testing.T) {
	r := &Relay{disconnectLogs: map[disconnect]disconnectLog{}}
	pings, resets := disconnect{ofCaller, "ping_flood"}, disconnect{ofCaller, "rapid_reset"}
	for i, tt := range []struct {
		what   disconnect
		at     time.Duration
		unsaid int
		say    bool
	}{
		{pings, 0, 0, true}, {resets, 1, 0, true}, {pings, time.Second, 0, false},
		{pings, time.Minute - 1, 0, false}, {pings, time.Minute, 2, true}, {pings, time.Hour, 0, true},
	} {
		if unsaid, say := r.mayLog(tt.what, tt.at); unsaid != tt.unsaid || say != tt.say {
			t.Errorf("step %d: %d, %t", i, unsaid, say)
		}
	}
}
