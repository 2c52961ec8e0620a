package report

import (
	"math"
	"slices"
	"testing"
)

func TestUpTo(t *testing.T) {
	for _, test := range []struct {
		most  float64
		ticks []float64
	}{
		{10, []float64{0, 2, 4, 6, 8, 10}},
		{11, []float64{0, 5, 10, 15}},
		{97, []float64{0, 20, 40, 60, 80, 100}},
		{500, []float64{0, 100, 200, 300, 400, 500}},
		{0, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{math.NaN(), []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{math.Inf(1), []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
	} {
		a := upTo("x", test.most)
		if a.From != 0 || a.To != a.Ticks[len(a.Ticks)-1] || !near(a.Ticks, test.ticks) {
			t.Errorf("up to %v: %+v, want ticks %v", test.most, a, test.ticks)
		}
	}
}

func TestDecades(t *testing.T) {
	for _, test := range []struct{ least, most, from, to float64 }{
		{3, 40, 1, 100},
		{1, 10, 1, 10},
		{10, 10, 10, 100},
		{0, 50, 1, 100},
		{200, 2e6, 100, 1e7},
	} {
		a := decades("x", test.least, test.most)
		if !near([]float64{a.From, a.To}, []float64{test.from, test.to}) || !near([]float64{a.Ticks[0], a.Ticks[len(a.Ticks)-1]}, []float64{a.From, a.To}) {
			t.Errorf("decades of %v to %v: %+v, want %v to %v", test.least, test.most, a, test.from, test.to)
		}
		if n := len(a.Ticks); n > 12 {
			t.Errorf("%d ticks", n)
		}
	}
}

func near(got, want []float64) bool {
	return slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) })
}
