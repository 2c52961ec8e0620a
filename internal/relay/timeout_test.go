package relay

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
)

// late takes deadlines as peers see them.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &call{st: &shardState{relay: &Relay{start: time.Now()}}, callFields: callFields{due: due{deadline: time.Second}}}
		pass(time.Second - 2*clockSkew)
		if c.late() {
			t.Error("late before the deadline")
		}
		pass(clockSkew)
		if !c.late() || (&call{}).late() {
			t.Error("not late at the deadline, or late without one")
		}
	})
	if codeOfReset(0) != grpcwire.Internal {
		t.Error("an answer without an end is Internal")
	}
}
