package report

import (
	"math"

	"github.com/cabrank/cabrank/lab/internal/stats"
)

// Findings are what a comparison came to, for JSON.
type Findings struct {
	A string `json:"a"` // the file
	B string `json:"b"`
	// Words are the sentences of the summary.
	Words []string `json:"words"`
	// Tested are the comparisons, that of the primary figure first.
	Tested []Tested `json:"tested,omitempty"`
	// Figures are all medians, or those of two loads.
	Figures []Medians `json:"figures"`
}

// Tested is one comparison of B with A.
type Tested struct {
	Arm     string `json:"arm"`
	Load    string `json:"load"`
	Primary bool   `json:"primary,omitempty"`
	// Withheld says why there is no verdict whatever the pairs say.
	Withheld string `json:"withheld,omitempty"`
	stats.Comparison
}

// Medians is a figure of an arm at a load in A and in B; null is not known, or above
// every number.
type Medians struct {
	Arm    string   `json:"arm,omitempty"`
	Load   string   `json:"load,omitempty"`
	Figure string   `json:"figure"`
	A      *float64 `json:"a"`
	B      *float64 `json:"b"`
}

func medians(key cellKey, figure string, a, b float64) (Medians, bool) {
	m := Medians{Arm: key.arm, Load: key.load, Figure: figure, A: number(a), B: number(b)}
	return m, m.A != nil || m.B != nil
}

// number is nil for what JSON cannot say.
func number(v float64) *float64 {
	if !finite(v) {
		return nil
	}
	return &v
}

// Findings are those of two runs.
func (t Two) Findings() Findings {
	f := Findings{A: t.NameA, B: t.NameB, Words: t.Summary(), Figures: []Medians{}}
	if verdicts, err := t.verdicts(); err == nil {
		for _, v := range verdicts {
			tested := Tested{Arm: v.claim.Other, Load: v.claim.Load, Primary: v.claim.Primary, Withheld: v.withheld, Comparison: v.comparison}
			if v.withheld != "" { // what the pairs would have said is not for anybody's use
				tested.Comparison = stats.Comparison{
					Figure: v.comparison.Figure, Verdict: "withheld", Ratio: stats.Interval{High: math.Inf(1)},
					P: 1, PEqual: 1, Margin: v.comparison.Margin, Pairs: v.comparison.Pairs,
				}
			}
			f.Tested = append(f.Tested, tested)
		}
	}
	a, b := cellsOf(t.A), cellsOf(t.B)
	for _, key := range t.common() {
		for _, name := range columns() {
			left, right := a.spread(key.arm, key.load, name).middle, b.spread(key.arm, key.load, name).middle
			if m, known := medians(key, name, left, right); known {
				f.Figures = append(f.Figures, m)
			}
		}
	}
	return f
}

// Findings are those of two loads.
func (t TwoLoads) Findings() Findings {
	f := Findings{A: t.NameA, B: t.NameB, Words: t.Summary(), Figures: []Medians{}}
	a, b := blockOf(t.A), blockOf(t.B)
	for _, name := range columns() {
		if m, known := medians(cellKey{}, name, a.Figure(name), b.Figure(name)); known {
			f.Figures = append(f.Figures, m)
		}
	}
	return f
}
