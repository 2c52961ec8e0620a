package relay

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/testkit"
)

// late takes deadlines as peers see them.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &call{st: &shardState{relay: &Relay{start: time.Now()}}, callFields: callFields{due: due{deadline: time.Second}}}
		pass(time.Second - 2*clockSkew)
		testkit.Want(t, !c.late(), "late before the deadline")
		pass(clockSkew)
		testkit.Want(t, c.late() && !(&call{}).late(), "not late at the deadline, or late without one")
	})
	testkit.Want(t, codeOfReset(0) == grpcwire.Internal, "an answer without an end is Internal")
}
