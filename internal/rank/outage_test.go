package rank

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// While nothing is ready and nothing will be soon, calls are refused at once:
// those that wait, those that come, and those that are put back.
func TestOutageRefusesAtOnce(t *testing.T) {
	for _, byHash := range []bool{false, true} {
		t.Run(fmt.Sprint("by hash ", byHash), func(t *testing.T) {
			r := New(Options{QueueLength: 9, ByHash: byHash, Lanes: []LaneOptions{{Name: "admin", Priority: 1}}})
			e := r.Add("worker-1", EndpointOptions{Slots: 1})
			r.SetReady(e, true, 0, nil)
			running, waits, admin, comes := newCaller(0), newCaller(0), newCaller(0), newCaller(2*ms)
			admin.Request.Lane = 1
			running.acquire(t, r, 0, Granted)
			waits.acquire(t, r, 0, Queued)
			admin.acquire(t, r, 0, Queued)
			if n := deliver(r.SetOutage(true, 1*ms, nil)); n != 0 {
				t.Fatalf("%d calls are told something while an endpoint is ready", n)
			}
			testkit.Equal(t, deliver(r.SetReady(e, false, 2*ms, nil)), 2, "calls are told that the last endpoint went")
			for _, c := range []*caller{waits, admin} {
				testkit.Want(t, slices.Equal(c.refused, []Reason{NoneReady}), "a call that waited was told %v", c.refused)
			}
			_, v, reason := r.Acquire(&comes.Ticket, comes, 2*ms)
			testkit.Want(t, v == Refused && reason == NoneReady, "a call that comes: %v, %v", v, reason)
			running.release(r, Lost, 3*ms)
			running.rejoin(t, r, 3*ms, Queued)
			testkit.Want(t, woken(r), "nobody looks after a call that was put back")
			tick(r, 3*ms)
			if !slices.Equal(running.refused, []Reason{NoneReady}) || r.Waiting() != 0 {
				t.Errorf("a call that was put back was told %v; %d wait", running.refused, r.Waiting())
			}
			r.SetOutage(false, 4*ms, nil)
			comes.acquire(t, r, 4*ms, Queued)
			if n := deliver(r.SetReady(e, true, 2000*ms, nil)); n != 1 || !comes.lease.Valid() {
				t.Errorf("%d notices when the endpoint is back", n)
			}
		})
	}
}
