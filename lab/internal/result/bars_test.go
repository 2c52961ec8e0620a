package result

import (
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Bars are held by medians of what is good in every round, beside the lowest of the others.
func TestJudgeBars(t *testing.T) {
	r := &Run{}
	for round, ours := range []float64{2, 9, 3} {
		for arm, cpu := range map[string]float64{"a": ours, "b": 4, "c": 5} {
			b := Block{Arm: arm, Load: "x", Round: round + 1, Figures: map[string]float64{"cpu_front": cpu * 1e-6, "errors": 0, "rss_front_grown": 3e6}}
			if arm == "c" {
				b.Errors, b.Figures["errors"] = map[string]int64{"unsent": 7}, 0.5
			}
			if arm == "b" && round == 2 {
				b.Errors = map[string]int64{"Unavailable": 1}
			}
			r.Blocks = append(r.Blocks, b)
		}
	}
	for _, c := range []struct {
		bar  Bar
		want string
	}{
		{Bar{Figure: "cpu_front", Arm: "a", Most: new(3e-6)}, "x: cpu_front of a: 3µs (2µs..9µs), at most 3µs: held"},
		{Bar{Figure: "cpu_front", Arm: "a", Least: new(4e-6)}, "at least 4µs: MISSED"},
		{Bar{Figure: "rss_front_grown", Arm: "a", Most: new(2e6)}, "3.0 MB (3.0 MB..3.0 MB), at most 2.0 MB: MISSED"},
		{Bar{Figure: "cpu_front", Arm: "a", Over: []string{"b", "c"}, Most: new(0.61)}, "cpu_front of a / the lowest of b, c (b, c): 0.600 (0.500..2.250), at most 0.610: held"},
		{Bar{Figure: "cpu_front", Arm: "a", Over: []string{"c"}, Less: true, Most: new(0.0)}, "a - c: -2µs (-3µs..4µs), at most 0s: held"},
		{Bar{Figure: "cpu_front", Arm: "b", Most: new(1.0)}, "NOT VALID (2 of 3 rounds"},
		{Bar{Figure: "cpu_front", Arm: "d", Most: new(1.0)}, "NOT VALID (0 of 0 rounds"},
		{Bar{Figure: "p99", Arm: "a", Most: new(1.0)}, "NOT VALID (0 of 3 rounds"},
		{Bar{Figure: "errors", Arm: "c", Most: new(0.4)}, "0.5 (0.5..0.5), at most 0.4: MISSED"},
		{Bar{Figure: "cpu_front", Arm: "a", Over: []string{"d"}, Most: new(1.0)}, "not told (none of them was measured)"},
	} {
		c.bar.Load = "x"
		r.Bars = []Bar{c.bar}
		testkit.Says(t, r.JudgeBars()[0].String(), c.want)
	}
}
