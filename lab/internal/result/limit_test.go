package result_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// The highest rate is the last before the first that has too many errors; loads of
// another kind, and those at which something happens, do not count.
func TestHighestRates(t *testing.T) {
	r := result.Run{
		Limit: 0.01, Arms: []result.Arm{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}},
		Loads: []result.Load{
			{Name: "1", X: 300, Unit: "calls/s"}, {Name: "2", X: 100, Unit: "calls/s"}, {Name: "3", X: 200, Unit: "calls/s"},
			{Name: "4", X: 900, Unit: "callers"}, {Name: "5", X: 900, Unit: "calls/s"},
		},
	}
	add := func(arm, load string, errors float64, events ...result.Event) {
		r.Blocks = append(r.Blocks, result.Block{Arm: arm, Load: load, Figures: map[string]float64{"errors": errors}, Events: events})
	}
	for i, errors := range [][]float64{{0.5, 0, 0}, {0, 0, 0}, {0, 0.01, 0}} {
		for l, share := range errors {
			add(r.Arms[i].Name, r.Loads[l].Name, share)
		}
		add(r.Arms[i].Name, "4", 0)
		add(r.Arms[i].Name, "5", 0, result.Event{Did: "worker-1 killed"})
	}
	add("a", "3", 0)
	add("a", "3", 0.3)                       // one in three
	add("d", "1", 0)                         // one rate says nothing
	for _, arm := range []string{"b", "e"} { // a marked block says nothing either
		for _, load := range []string{"1", "2"} {
			r.Blocks = append(r.Blocks, result.Block{Arm: arm, Load: load, Figures: map[string]float64{"errors": 0.9}, Marks: []string{"noise"}})
			r.Blocks = append(r.Blocks, r.Blocks[len(r.Blocks)-1])
		}
	}
	want := []result.Highest{
		{Arm: "a", Rate: 200}, {Arm: "b", Rate: 300, Top: true}, {Arm: "c"},
		{Arm: "e", Unjudged: true},
	}
	if got := r.HighestRates(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	r.Limit = 0
	if got := r.HighestRates(); got != nil {
		t.Errorf("without a limit: %+v", got)
	}
}

// Workers who were added have their part when they keep it.
func TestRebalance(t *testing.T) {
	for _, c := range []struct {
		name   string
		shares [][3]int64 // by second
		want   float64    // below 0: above every number
	}{
		{"at once", [][3]int64{{90, 0, 0}, {90, 0, 0}, {30, 30, 30}, {30, 30, 30}, {40, 30, 20}, {30, 30, 30}}, 0.5},
		{"later", [][3]int64{{90, 0, 0}, {90, 0, 0}, {90, 0, 0}, {90, 0, 0}, {30, 60, 0}, {30, 0, 60}, {30, 30, 30}, {30, 30, 30}}, 2.5},
		{"for a moment", [][3]int64{{90, 0, 0}, {90, 0, 0}, {30, 30, 30}, {90, 0, 0}, {90, 0, 0}, {90, 0, 0}}, -1},
		{"a call that was due before", [][3]int64{{90, 0, 2}, {60, 10, 20}, {30, 30, 30}, {30, 30, 30}, {30, 30, 30}, {30, 30, 30}}, 0},
		{"never", [][3]int64{{90, 0, 0}, {90, 0, 0}, {90, 0, 0}, {90, 0, 0}, {90, 0, 0}}, -1},
	} {
		r := record(len(c.shares))
		for i, share := range c.shares {
			r.Timeline.Intervals[i].Workers = traffic.Shares{}
			for w, calls := range share {
				r.Timeline.Intervals[i].Workers[fmt.Sprintf("worker-%d", w+1)] = calls
			}
			if share[1]+share[2] == 0 {
				r.Timeline.Intervals[i].Workers = traffic.Shares{"worker-1": share[0]}
			}
		}
		b := result.Block{Events: []result.Event{
			{Did: "a worker added", At: 1500 * time.Millisecond}, {Did: "a worker added", At: 1500 * time.Millisecond},
			{Did: "a worker added", Err: "there is no other"}, {Did: "worker-1 killed"},
		}}
		b.Measure(r, 3)
		got, known := b.Figures["rebalance"]
		if beyond := slices.Contains(b.Beyond, "rebalance"); c.want < 0 && !beyond || c.want >= 0 && (!known || !near(got, c.want)) {
			t.Errorf("%s: %v, beyond %v; want %v", c.name, got, beyond, c.want)
		}
	}
	b := result.Block{Events: []result.Event{{Did: "worker-1 killed"}}}
	if b.Measure(record(2, 0, 1), 3); !math.IsNaN(b.Figure("rebalance")) {
		t.Error("told without a worker that was added and without an answer")
	}
	if b.Measure(record(5), 3); slices.Contains(b.Beyond, "rebalance") {
		t.Error("told without a worker that was added")
	}
}
