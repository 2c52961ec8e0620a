package report

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

func TestLinear(t *testing.T) {
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
		a := linear("x", test.most, plainNumber)
		testkit.Want(t, a.from == 0 && a.to == a.ticks[len(a.ticks)-1] && near(a.ticks, test.ticks),
			"up to %v: %+v, want ticks %v", test.most, a, test.ticks)
	}
}

func TestLogarithmic(t *testing.T) {
	for _, test := range []struct{ least, most, from, to float64 }{
		{3, 40, 1, 100},
		{1, 10, 1, 10},
		{10, 10, 10, 100},
		{0, 50, 1, 100},
		{200, 2e6, 100, 1e7},
	} {
		a := logarithmic("x", test.least, test.most, plainNumber)
		if !near([]float64{a.from, a.to}, []float64{test.from, test.to}) || !near([]float64{a.ticks[0], a.ticks[len(a.ticks)-1]}, []float64{a.from, a.to}) {
			t.Errorf("decades of %v to %v: %+v, want %v to %v", test.least, test.most, a, test.from, test.to)
		}
		n := len(a.ticks)
		testkit.Want(t, n <= 12, "%d ticks", n)
	}
	a := axis{from: 10, to: 1000, log: true}
	for v, want := range map[float64]float64{1: 0, 10: 0, 100: 50, 1000: 100, 5000: 100} {
		got := a.at(v)
		testkit.Want(t, math.Abs(got-want) <= 1e-9, "%v is at %v %%, want %v", v, got, want)
	}
}

func near(got, want []float64) bool {
	return slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) })
}

// A line is drawn where there are points, and not over a gap. In words there is nothing either.
func TestGaps(t *testing.T) {
	gaps, whole := line{Key: Key{Label: "gaps", Pen: wine}}, line{Key: Key{Label: "whole", Pen: accent}}
	for x, y := range []float64{10, 20, math.NaN(), math.NaN(), 30, math.NaN()} {
		gaps.add(float64(x), y)
		whole.add(float64(x), 50)
	}
	x, y := linear("x", 5, plainNumber), linear("y", 100, plainNumber)
	p := Picture{Title: "t"}.lines(x, y, []line{gaps, whole, {Key: Key{Label: "nothing"}}})
	want := "gaps: 10 at 0, 20 at 1, none at 2, none at 3, 30 at 4, none at 5."
	testkit.Want(t, strings.Contains(p.Words, want), "%s, want %s", p.Words, want)
	testkit.Equal(t, p.Rows[0].Marks[0].Path, "M0 900h0L200 800M800 700h0", "two stretches, the second a dot")
	testkit.Want(t, len(p.Legend) == 2 && p.Legend[0].Label == "whole", "%+v: want the line on top first", p.Legend)
	testkit.Want(t, (Picture{}).lines(x, y, []line{{points: []point{{x: 1}}}}) == nil, "a picture of zeros")
}

// What is not judged is drawn hollow, and said.
func TestMarked(t *testing.T) {
	l := line{Key: Key{Label: "a", Pen: accent}, dots: true, points: []point{{x: 1, y: 5, low: 4, high: 6}, {x: 2, y: 6, marked: true}}}
	p := Picture{}.lines(linear("x", 2, plainNumber), linear("y", 10, plainNumber), []line{l})
	var kinds []string
	for _, m := range p.Rows[0].Marks {
		kinds = append(kinds, m.Kind)
	}
	if !slices.Equal(kinds, []string{"line", "span", "dot", "dot", "hollow"}) || !strings.Contains(p.Words, "5 at 1, 6 at 2 (not judged)") {
		t.Error(kinds, p.Words)
	}
	b := Picture{Title: "CPU"}.bars(linear("µs", 10, plainNumber), []Key{{Label: "callers", Pen: accent}, {Label: "workers", Pen: wine}}, []bar{
		{label: "a & b", text: "5 µs", values: []float64{2, 3}, marked: true}, {label: "c", text: "not known"},
	})
	want := "CPU. Bars of µs. a & b: callers 2, workers 3 (not judged). c: not known."
	testkit.Want(t, b.Words == want, "%s, want %s", b.Words, want)
	if m := b.Rows[0].Marks; b.Rows[0].Label != "a & b: 5 µs" || len(m) != 2 || m[1].Kind != "outline" || m[1].Path != "M200 0V1000H500V0Z" {
		t.Errorf("%+v", b.Rows)
	}
}

// Rows are on one scale, their parts above each other, and what was done is said.
func TestStripRows(t *testing.T) {
	p := Picture{Title: "stopped", Events: []Event{{From: 1, To: 2, Label: "stop"}, {From: 3, To: 3, Label: "kill"}}}.
		strips(linear("s", 4, plainNumber), []Key{{Label: "answered", Pen: gray}, {Label: "lost", Pen: wine}}, 10,
			[]strip{{"a: all is well", 1, [][]float64{{10, 0}, {5, 5}, {0, 20}}}, {"c", 1, nil}})
	want := "stopped. Columns over s. From 1 to 2: stop. At 3: kill. a: all is well. c."
	testkit.Want(t, p.Words == want, "%s, want %s", p.Words, want)
	marks := p.Rows[0].Marks
	if marks[0].Pen != wine || marks[0].Path != "M0 1000V0H250V0H500V0H750V1000Z" || marks[1].Path != "M0 1000V0H250V500H500V1000H750V1000Z" {
		t.Errorf("%+v", marks)
	}
	e := p.Events[0]
	testkit.Want(t, len(p.Rows) == 2 && e.Left == 25 && e.Width == 25 && e.Right == 50, "%+v", p)
}
