package stats_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/stats"
)

// ratios makes pairs with base 100 and these ratios.
func ratios(of ...float64) []stats.Pair {
	pairs := make([]stats.Pair, len(of))
	for i, r := range of {
		pairs[i] = stats.Pair{Base: 100, Other: 100 * r}
	}
	return pairs
}

// around makes ten pairs whose log ratios lie around that of a ratio, with a
// standard deviation of noise.
func around(ratio, noise float64) []stats.Pair {
	// These have mean 0 and standard deviation 1.
	places := []float64{-1.5, -1.1, -0.8, -0.5, -0.2, 0.2, 0.5, 0.8, 1.1, 1.5}
	of := make([]float64, len(places))
	for i, z := range places {
		of[i] = ratio * math.Exp(noise*z/1.0123)
	}
	return ratios(of...)
}

// with replaces the last pairs.
func with(pairs []stats.Pair, last ...stats.Pair) []stats.Pair {
	pairs = slices.Clone(pairs)
	copy(pairs[len(pairs)-len(last):], last)
	return pairs
}

func compare(t *testing.T, f stats.Figure) stats.Comparison {
	t.Helper()
	j, err := stats.Judge(true, f)
	testkit.Must(t, err)
	return j[0]
}

func TestVerdicts(t *testing.T) {
	silentOther := stats.Pair{Base: 100, Other: math.Inf(1)}
	silentBase := stats.Pair{Base: math.Inf(1), Other: 100}
	silentBoth := stats.Pair{Base: math.Inf(1), Other: math.Inf(1)}
	unknown := stats.Pair{Base: 100, Other: stats.Unknown()}
	for _, tc := range []struct {
		name    string
		figure  stats.Figure
		verdict stats.Verdict
		words   string
	}{
		{"lower", stats.Figure{Pairs: around(0.62, 0.15)}, stats.Lower, "p99 lower by 31–44 %"},
		{"higher", stats.Figure{Pairs: around(1.2, 0.1)}, stats.Higher, "p99 higher by 12–29 %"},
		{"much higher", stats.Figure{Pairs: around(3, 0.2)}, stats.Higher, "p99 2.6–3.4 times as high"},
		{"higher, nobody knows how much", stats.Figure{Pairs: around(5, 1.7)}, stats.Higher, "p99 1.53–16.4 times as high"},
		{"maybe twice", stats.Figure{Pairs: around(1.5, 1)}, stats.NoDifference, "p99: no difference shown (25 % lower to 3 times as high)"},
		{"out of this world", stats.Figure{Pairs: around(1e9, 1)}, stats.Higher, "p99 5.0e+08–2.0e+09 times as high"},
		{"a little lower", stats.Figure{Pairs: around(0.99, 0.01)}, stats.Lower, "p99 lower by 0.3–1.7 %"},
		{"hidden by noise", stats.Figure{Pairs: around(0.95, 0.3)}, stats.NoDifference, "p99: no difference shown (23 % lower to 17 % higher)"},
		{"no margin, no claim", stats.Figure{Pairs: around(1, 0.01)}, stats.NoDifference, "p99: no difference shown (0.7 % lower to 0.7 % higher)"},
		{"about equal", stats.Figure{Pairs: around(1, 0.03), Margin: 0.05}, stats.AboutEqual, "p99 about equal (within 5 %)"},
		{"different, but it does not matter", stats.Figure{Pairs: around(0.98, 0.01), Margin: 0.05}, stats.AboutEqual, "p99 about equal (within 5 %), lower by 1–3 %"},
		{"different, and it may matter", stats.Figure{Pairs: around(0.95, 0.03), Margin: 0.05}, stats.Lower, "p99 lower by 3–7 %"},
		{"too noisy for equal", stats.Figure{Pairs: around(1, 0.1), Margin: 0.05}, stats.NoDifference, "p99: no difference shown (7 % lower to 7 % higher)"},
		{"all the same", stats.Figure{Pairs: ratios(1, 1, 1, 1, 1, 1, 1, 1, 1, 1)}, stats.NoDifference, "p99: no difference shown (0 % to 0 %)"},
		{"all the same, with a margin", stats.Figure{Pairs: ratios(1, 1, 1, 1, 1, 1, 1, 1, 1, 1), Margin: 0.05}, stats.AboutEqual, "p99 about equal (within 5 %)"},
		{"all half", stats.Figure{Pairs: ratios(.5, .5, .5, .5, .5, .5, .5, .5, .5, .5)}, stats.Lower, "p99 lower by 50 %"},

		{"nothing", stats.Figure{}, stats.TooFewPairs, "p99: too few pairs (0, needs 10)"},
		{"nine pairs", stats.Figure{Pairs: around(0.1, 0.01)[:9], Margin: 0.05}, stats.TooFewPairs, "p99: too few pairs (9, needs 10)"},
		{"nine that tell something", stats.Figure{Pairs: with(around(0.1, 0.01), unknown)}, stats.TooFewPairs, "p99: too few pairs (9 of 10 known, needs 10)"},
		{"two silent arms tell nothing", stats.Figure{Pairs: with(around(0.1, 0.01), silentBoth)}, stats.TooFewPairs, "p99: too few pairs (9 of 10 known, needs 10)"},

		{"one silent block of ten", stats.Figure{Pairs: with(around(1.5, 0.01), silentOther)}, stats.Higher, "p99 higher by 48–52 %"},
		{"two silent blocks of ten", stats.Figure{Pairs: with(around(1.5, 0.01), silentOther, silentOther)}, stats.Higher, "p99 higher by at least 48 %"},
		{"two silent blocks against the trend", stats.Figure{Pairs: with(around(0.5, 0.01), silentOther, silentOther)}, stats.NoDifference, "p99: no difference shown (51 % lower to any amount higher)"},
		{"always silent", stats.Figure{Pairs: slices.Repeat([]stats.Pair{silentOther}, 10), Margin: 0.05}, stats.Higher, "p99 higher without bound"},
		{"base always silent", stats.Figure{Pairs: slices.Repeat([]stats.Pair{silentBase}, 10)}, stats.Lower, "p99 lower without bound"},
		{"base silent in half", stats.Figure{Pairs: with(around(0.5, 0.01), silentBase, silentBase, silentBase, silentBase, silentBase)}, stats.Lower, "p99 lower by at least 50 %"},
		{"unknown is worst for each", stats.Figure{Pairs: slices.Concat(around(0.5, 0.01), []stats.Pair{unknown, unknown})}, stats.Lower, "p99 lower by 49–51 %"},
		{"many unknown", stats.Figure{Pairs: slices.Concat(around(0.5, 0.01), slices.Repeat([]stats.Pair{unknown}, 4))}, stats.NoDifference, "p99: no difference shown (any amount lower to any amount higher)"},
		{"equal, and one unknown", stats.Figure{Pairs: append(around(1, 0.02), unknown), Margin: 0.05}, stats.AboutEqual, "p99 about equal (within 5 %)"},
		{"zeros", stats.Figure{Pairs: slices.Repeat([]stats.Pair{{}}, 10), Margin: 0.05}, stats.AboutEqual, "p99 about equal (within 5 %)"},
		{"zero against something", stats.Figure{Pairs: slices.Repeat([]stats.Pair{{Base: 3}}, 10)}, stats.Lower, "p99 lower without bound"},
	} {
		tc.figure.Name = "p99"
		c := compare(t, tc.figure)
		testkit.Want(t, c.Verdict == tc.verdict && c.Words() == tc.words,
			"%s: %s, %q; want %s, %q", tc.name, c.Verdict, c.Words(), tc.verdict, tc.words)
		testkit.Want(t, c.Pairs == len(tc.figure.Pairs), "%s: %d pairs, were %d", tc.name, c.Pairs, len(tc.figure.Pairs))
	}
}

// One against the other is the other against the one, upside down.
func TestArmsChangePlaces(t *testing.T) {
	for _, pairs := range [][]stats.Pair{
		around(0.62, 0.15), around(1, 0.02), ratios(1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
		with(around(0.5, 0.1), stats.Pair{Base: math.Inf(1), Other: 1}),
		append(around(0.5, 0.1), stats.Pair{Base: 1, Other: stats.Unknown()}),
	} {
		swapped := make([]stats.Pair, len(pairs))
		for i, p := range pairs {
			swapped[i] = stats.Pair{Base: p.Other, Other: p.Base}
		}
		there := compare(t, stats.Figure{Pairs: pairs, Margin: 0.05})
		back := compare(t, stats.Figure{Pairs: swapped, Margin: 0.05})
		near := func(a, b float64) bool { return a == b || math.Abs(a/b-1) < 1e-9 }
		if !near(there.Ratio.Low, 1/back.Ratio.High) || !near(there.Ratio.High, 1/back.Ratio.Low) ||
			!near(there.P, back.P) || !near(there.PEqual, back.PEqual) {
			t.Errorf("%+v and back %+v", there, back)
		}
	}
}

func TestSilenceIsTold(t *testing.T) {
	pairs := with(around(1, 0.1), stats.Pair{Base: math.Inf(1), Other: math.Inf(1)}, stats.Pair{Base: 1, Other: math.Inf(1)})
	c := compare(t, stats.Figure{Name: "p99", Pairs: pairs})
	got, want := c.Silence("haproxy", "cabrank"), "haproxy answered no call in 1 of 10 runs, cabrank answered no call in 2 of 10 runs"
	testkit.Want(t, got == want, "told %q, want %q", got, want)
	testkit.Equal(t, compare(t, stats.Figure{Pairs: around(1, 0.1)}).Silence("a", "b"), "", "told of arms that answered")
}

// The primary figure decides alone; the others pay for how many they are.
func TestSecondaryFiguresAreCorrected(t *testing.T) {
	alone := around(0.9, 0.14) // p is just below 0.05
	primary := stats.Figure{Name: "p99", Pairs: alone}
	others := []stats.Figure{
		{Name: "p50", Pairs: alone},
		{Name: "p90", Pairs: around(0.5, 0.1)},
		{Name: "mean", Pairs: around(1, 0.1)},
		{Name: "p99.9", Pairs: alone[:9]},
	}
	j, err := stats.Judge(true, append([]stats.Figure{primary}, others...)...)
	testkit.Must(t, err)
	testkit.Want(t, j[0].Verdict == stats.Lower && j[0].Confidence == 0.95, "primary: %+v, want lower with 0.95", j[0])
	for i, want := range []struct {
		verdict    stats.Verdict
		confidence float64
	}{
		{stats.NoDifference, 1 - 0.05/3},
		{stats.Lower, 1 - 0.05/4}, // the smallest p of four, one of which could not be tested
		{stats.NoDifference, 1 - 0.05/3},
		{stats.TooFewPairs, 0},
	} {
		got := j[i+1]
		testkit.Want(t, got.Verdict == want.verdict && math.Abs(got.Confidence-want.confidence) <= 1e-12,
			"%s: %s with %v, want %s with %v", got.Figure, got.Verdict, got.Confidence, want.verdict, want.confidence)
	}
}

func TestJudgeRefuses(t *testing.T) {
	for want, f := range map[string]stats.Figure{
		"p99: pair 3: a figure is -1: must be 0 or more":   {Name: "p99", Pairs: ratios(1, 1, -0.01)},
		"p99: pair 1: a figure is -Inf: must be 0 or more": {Name: "p99", Pairs: ratios(math.Inf(-1))},
		"p99: the margin is -0.1: must be from 0 to 1":     {Name: "p99", Margin: -0.1},
		"p99: the margin is NaN: must be from 0 to 1":      {Name: "p99", Margin: math.NaN()},
		"p99: the margin is +Inf: must be from 0 to 1":     {Name: "p99", Margin: math.Inf(1)},
	} {
		_, err := stats.Judge(true, f)
		testkit.RefusedBy(t, err, want)
		_, err = stats.Judge(false, stats.Figure{}, f)
		testkit.RefusedBy(t, err, want)
	}
}

// An end that is infinite is null, for readers whose numbers have none.
func TestComparisonAsJSON(t *testing.T) {
	for ratio, pairs := range map[string][]stats.Pair{
		`{"low":0.5,"middle":0.5,"high":0.5}`:    slices.Repeat([]stats.Pair{{Base: 2, Other: 1}}, 10),
		`{"low":null,"middle":null,"high":null}`: slices.Repeat([]stats.Pair{{Base: 1, Other: math.Inf(1)}}, 10),
		`{"low":0,"middle":null,"high":null}`:    slices.Repeat([]stats.Pair{{Base: 1, Other: stats.Unknown()}}, 10),
	} {
		data, err := json.Marshal(compare(t, stats.Figure{Name: "p99", Pairs: pairs, Margin: 0.05}))
		testkit.Want(t, err == nil && strings.Contains(string(data), `"ratio":`+ratio), "written as %s, %v; want %s", data, err, ratio)
	}
}
