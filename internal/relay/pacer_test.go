package relay

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/testkit"
)

// R1: a slot that pauses for less than a millisecond is waited for exactly.
func TestShortPausesAreExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var naps []time.Duration
		g := newPipeRig(t, func(o *Options) {
			o.Nap = func(d time.Duration) {
				naps = append(naps, d)
				pass(d)
			}
		})
		e, _ := g.pipeWorker("w1", 1)
		var ticket rank.Ticket
		lease, _, _ := g.rank.Acquire(&ticket, nil, g.now())
		const late = 300 * time.Microsecond
		deliver(g.rank.ReleaseAt(lease, rank.OK, g.now()+late, g.now(), nil))
		pass(time.Millisecond)
		testkit.Want(t, len(naps) == 1 && naps[0] == late && g.Rank().Endpoints[0].Paused == 0 && lease.Endpoint() == e.slots,
			"naps %v, %+v", naps, g.Rank().Endpoints[0])
	})
}
