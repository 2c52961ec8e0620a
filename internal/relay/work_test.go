package relay

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/testkit"
)

// Tries at the same time, as of a hedge, count once; calls that never had a slot
// count nothing.
func TestWorkCountsOnce(t *testing.T) {
	var w work
	w.begin(10)
	w.begin(20)
	w.end(50)
	w.end(60)
	w.begin(100)
	w.end(90) // clocks of two shards
	testkit.Want(t, w.total == 50, "got %v, want 50", w.total)
	g := newRig(t, withQueue(0, time.Second))
	caller := g.caller()
	caller.WriteHeaders(1, end, request(hello)...)
	wantStatus(caller, 1, "8", "cabrank: queue full")
	testkit.Eventually(t, soon, "the call to be counted", func() bool { return g.running() == 0 })
	if m := g.Stats().of(t, "other"); m.Work.Counts[0] != 0 || m.Wait.Counts[0] != 1 {
		t.Errorf("a call without a slot: %v at workers, %v waiting", m.Work.Counts, m.Wait.Counts)
	}
}

// of returns what is known of one method.
func (s Stats) of(t testing.TB, name string) stats.MethodStats {
	t.Helper()
	for _, m := range s.Methods {
		if m.Method == name {
			return m
		}
	}
	t.Fatalf("no counters of %s", name)
	return stats.MethodStats{}
}
