package ranksim

import (
	"fmt"
	"math"
	"testing"

	"github.com/cabrank/cabrank/internal/rank"
)

// What the rank must reach (docs/rank.md). The ideals see the same calls with
// the same service times; where a bar is out of reach for any system, the
// simulation computes what is in reach and the bar is relative to that.

// rankOptions are those of all bars: a queue that is never full.
func rankOptions() rank.Options { return rank.Options{QueueLength: 1 << 20} }

// handlers are the ways in which workers and cancels go together.
func handlers() []struct {
	name   string
	worker Worker
} {
	return []struct {
		name   string
		worker Worker
	}{
		{"handlers stop", Worker{Slots: 1, OnCancel: rank.Free}},
		{"handlers run on, hold", Worker{Slots: 1, RunsOn: true, OnCancel: rank.Hold}},
		{"handlers run on, finish", Worker{Slots: 1, RunsOn: true, OnCancel: rank.Finish}},
	}
}

// limit is what a value must keep to.
type limit struct {
	value float64
	least bool // at least, else at most
}

func atMost(v float64) limit  { return limit{value: v} }
func atLeast(v float64) limit { return limit{value: v, least: true} }

func (l limit) holds(v float64) bool {
	if l.least {
		return v >= l.value
	}
	return v <= l.value
}

func (l limit) String() string {
	if l.least {
		return fmt.Sprintf("≥ %.3g", l.value)
	}
	return fmt.Sprintf("≤ %.3g", l.value)
}

// recorder takes down what one bar came to with one seed.
type recorder struct {
	*testing.T
	name    string
	seed    uint64
	calls   int
	setting string
}

// bar runs one bar with every seed.
func bar(t *testing.T, name string, run func(*recorder)) {
	t.Helper()
	for seed := range uint64(barSeeds) {
		run(&recorder{T: t, name: name, seed: seed + 1, calls: barCalls})
	}
}

// compare notes a quantile of the time in the system over that of another one.
func (r *recorder) compare(got, want *Result, pick Pick, quantile float64, l limit) {
	r.Helper()
	g, w := got.Sojourns(pick), want.Sojourns(pick)
	ratio := func(q float64) float64 { return Share(Quantile(g, q), Quantile(w, q)) }
	what := fmt.Sprintf("p%v of the time in the system", math.Round(quantile*1e4)/1e2)
	r.report(what, ratio(quantile), l, [3]float64{ratio(0.5), ratio(0.99), ratio(0.999)})
}

// note takes down a value.
func (r *recorder) note(what string, value float64, l limit) {
	r.Helper()
	r.report(what, value, l, [3]float64{})
}

// report takes a value down and fails the test if it breaks its limit.
func (r *recorder) report(what string, value float64, l limit, ratios [3]float64) {
	r.Helper()
	found.add(finding{bar: r.name, setting: r.setting, what: what, limit: l}, value, ratios)
	if barHolds && !l.holds(value) {
		r.Errorf("%s, seed %d: %s %.4g, want %v", r.setting, r.seed, what, value, l)
	}
}
