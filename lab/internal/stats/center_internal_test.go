package stats

import (
	"math"
	"slices"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// The values of Student's sleep data (Biometrika 6, 1908): the differences of two drugs in hours.
// Published: t = 4.0621 with 9 degrees of freedom, p = 0.002833, 95 % from 0.7001 to 2.4599.
func TestStudentAgainstStudent(t *testing.T) {
	s := newStudent([]float64{1.2, 2.4, 1.3, 1.3, 0, 1.0, 1.8, 0.8, 4.6, 1.4})
	low, high := s.interval(0.95)
	for name, tc := range map[string][2]float64{
		"mean": {s.estimate(), 1.58}, "p": {difference(s), 0.002833}, "low": {low, 0.7001}, "high": {high, 2.4599},
	} {
		testkit.Want(t, math.Abs(tc[0]-tc[1]) <= 5e-5, "%s is %.6f, want %.6f", name, tc[0], tc[1])
	}
}

// Tables of the sign test: which places make a 95 % interval for the median.
func TestOrderStatisticsAgainstTables(t *testing.T) {
	for n, k := range map[int]int{5: 0, 6: 1, 8: 1, 9: 2, 10: 2, 12: 3, 15: 4, 20: 6, 25: 8, 50: 18} {
		var s sample
		for i := range n {
			s.known = append(s.known, float64(i+1))
		}
		low, high := order{s}.interval(0.95)
		wantLow, wantHigh := float64(k), float64(n-k+1)
		if k == 0 {
			wantLow, wantHigh = math.Inf(-1), math.Inf(1)
		}
		testkit.Want(t, low == wantLow && high == wantHigh,
			"%d values: from the %v. to the %v., want %v and %v", n, low, high, wantLow, wantHigh)
	}
	ten := order{sampleOf(make([]Pair, 10))}
	ten.known = []float64{-1, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	p := difference(ten)
	testkit.Want(t, math.Abs(p-22.0/1024) <= 1e-9, "nine of ten above zero: p is %v, want 22/1024", p)
}

// An interval leaves a value out exactly if the test refuses it.
func TestIntervalsAndTestsAgree(t *testing.T) {
	infinite := []float64{math.Inf(-1), -2, -1, -0.5, 0, 0.5, 1, 3, 4, math.Inf(1)}
	for name, c := range map[string]center{
		"t":        newStudent([]float64{1.2, 2.4, 1.3, 1.3, 0, 1.0, 1.8, 0.8, 4.6, 1.4}),
		"order":    order{sample{known: []float64{0, 0.8, 1, 1.2, 1.3, 1.3, 1.4, 1.8, 2.4, 4.6}}},
		"infinite": order{sample{known: infinite}},
		"unknown":  order{sample{known: infinite, unknown: 3}},
	} {
		for _, confidence := range []float64{0.9, 0.95, 0.99} {
			low, high := c.interval(confidence)
			for value := -6.03; value < 6; value += 0.1 {
				refused := min(c.above(value), c.below(value)) <= (1-confidence)/2
				testkit.Want(t, refused == (value < low || value > high),
					"%s, %v: %v is refused: %t, but the interval is %v to %v", name, confidence, value, refused, low, high)
			}
		}
	}
}

func TestMedianIsToldIfItIsKnown(t *testing.T) {
	inf := math.Inf(1)
	for _, tc := range []struct {
		sample
		want float64
	}{
		{sample{known: []float64{1, 2, 3}}, 2},
		{sample{known: []float64{1, 2, 3, 4}}, 2.5},
		{sample{known: []float64{1, 2, inf}}, 2},
		{sample{known: []float64{1, inf, inf}}, inf},
		{sample{known: []float64{-inf, -inf, inf, inf}}, math.NaN()},
		{sample{known: []float64{1, 2, 3}, unknown: 1}, math.NaN()},
		{sample{known: []float64{2, 2, 2}, unknown: 1}, 2},
		{sample{unknown: 1}, math.NaN()},
	} {
		got := (order{tc.sample}).estimate()
		testkit.Want(t, got == tc.want || (math.IsNaN(got) && math.IsNaN(tc.want)), "median of %+v is %v, want %v", tc.sample, got, tc.want)
	}
}

// The example of the method: p-values 0.01, 0.04, 0.03, 0.005 at 0.05.
func TestHolm(t *testing.T) {
	for _, tc := range []struct {
		p, adjusted, level []float64
	}{
		{[]float64{0.01, 0.04, 0.03, 0.005}, []float64{0.03, 0.06, 0.06, 0.02}, []float64{0.05 / 3, 0.025, 0.025, 0.0125}},
		{[]float64{0.04}, []float64{0.04}, []float64{0.05}},
		{[]float64{0.02, 0.02}, []float64{0.04, 0.04}, []float64{0.025, 0.05}},
		// The last one alone would be shown; one before it is not.
		{[]float64{0.03, 0.04}, []float64{0.06, 0.06}, []float64{0.025, 0.025}},
		{[]float64{1, 1, 0.9}, []float64{1, 1, 1}, []float64{0.05 / 3, 0.05 / 3, 0.05 / 3}},
		{[]float64{0, 0.5}, []float64{0, 0.5}, []float64{0.025, 0.05}},
		{nil, nil, nil},
	} {
		near := func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }
		var adjusted, level []float64
		for _, d := range holm(tc.p, 0.05) {
			adjusted, level = append(adjusted, d.adjusted), append(level, d.level)
		}
		testkit.Want(t, slices.EqualFunc(adjusted, tc.adjusted, near) && slices.EqualFunc(level, tc.level, near),
			"%v: %v at %v, want %v at %v", tc.p, adjusted, level, tc.adjusted, tc.level)
	}
}
