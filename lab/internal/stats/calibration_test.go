//go:build !race

package stats_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/stats"
)

// How often are the statements of this package wrong? Every test here repeats
// an experiment many times whose truth is known, with fixed seeds, and counts.
// The tables are those of docs/lab-method.md:
//
//	go test -tags soak -v -run TestCalibration ./internal/lab/stats/

const (
	tenPairs = 10
	margin   = 0.05
)

// share returns in how many of all trials something happened, in percent.
func share(trials int, happens func(random *rand.Rand) bool) float64 {
	random := rand.New(rand.NewPCG(13, uint64(trials)))
	n := 0
	for range trials {
		if happens(random) {
			n++
		}
	}
	return 100 * float64(n) / float64(trials)
}

// table prints a line of a table.
func table(t *testing.T, cells ...any) {
	t.Helper()
	var line strings.Builder
	for _, cell := range cells {
		if f, ok := cell.(float64); ok {
			cell = fmt.Sprintf("%.1f", f)
		}
		fmt.Fprintf(&line, "| %v ", cell)
	}
	t.Log(line.String() + "|")
}

// within fails a test whose share is outside.
func within(t *testing.T, what string, got, least, most float64) {
	t.Helper()
	testkit.Want(t, got >= least && got <= most, "%s: %.2f %%, want %v to %v %%", what, got, least, most)
}

// ratioModel is a world: how the log ratio of a pair is distributed.
type ratioModel struct {
	name  string
	draw  func(random *rand.Rand) float64
	mean  float64 // the truth
	usual bool    // else it is worse than what is to be expected, and only shown
}

// pairs draws the pairs of one experiment.
func (m ratioModel) pairs(random *rand.Rand, n int) []stats.Pair {
	pairs := make([]stats.Pair, n)
	for i := range pairs {
		pairs[i] = stats.Pair{Base: 1, Other: math.Exp(m.draw(random))}
	}
	return pairs
}

// gamma draws the sum of exponential values: skewed to the right by 2 over
// the root of their number.
func gamma(random *rand.Rand, of int) (sum float64) {
	for range of {
		sum += random.ExpFloat64()
	}
	return sum
}

// population makes a world of values that were measured.
func population(name string, values []float64) ratioModel {
	return ratioModel{
		name: name, mean: stat.Mean(values, nil), usual: true,
		draw: func(random *rand.Rand) float64 { return values[random.IntN(len(values))] },
	}
}

// formulas are worlds that are made of formulas.
func formulas() []ratioModel {
	noisy := func(chance, by float64, random *rand.Rand) float64 {
		if random.Float64() < chance {
			return by
		}
		return 0
	}
	return []ratioModel{
		{"normal", func(r *rand.Rand) float64 { return -0.3 + 0.1*r.NormFloat64() }, -0.3, true},
		{"both arms skewed by 1", func(r *rand.Rand) float64 { return 0.1*gamma(r, 4) - 0.1*gamma(r, 4) }, 0, true},
		{"one arm skewed by 0.5", func(r *rand.Rand) float64 { return 0.05 * gamma(r, 16) }, 0.8, true},
		{"one arm skewed by 1", func(r *rand.Rand) float64 { return 0.05 * gamma(r, 4) }, 0.2, true},
		{"one arm skewed by 2 (exponential)", func(r *rand.Rand) float64 { return 0.05 * gamma(r, 1) }, 0.05, false},
		{"a neighbor makes 1 run in 10 1.5 x slower", func(r *rand.Rand) float64 {
			return 0.05*r.NormFloat64() + noisy(0.1, 0.4, r) - noisy(0.1, 0.4, r)
		}, 0, false},
		{"a neighbor makes 1 run in 5 of one arm 1.5 x slower", func(r *rand.Rand) float64 {
			return 0.05*r.NormFloat64() + noisy(0.2, 0.4, r)
		}, 0.08, false},
	}
}

// measured are worlds whose figures are p99s, read from histograms.
func measured(t *testing.T) []ratioModel {
	t.Helper()
	random := rand.New(rand.NewPCG(13, 0))
	tails := make([]float64, blocks)
	for i := range tails {
		tails[i] = math.Log(tailed(t, random))
	}
	worlds := []ratioModel{{
		name: "p99 of heavy tails, arms apart", mean: math.Log(0.8), usual: true,
		draw: func(r *rand.Rand) float64 {
			return math.Log(0.8) + tails[r.IntN(blocks)] - tails[r.IntN(blocks)]
		},
	}}
	for _, load := range []float64{0.5, 0.7, 0.9} {
		logs := make([]float64, blocks)
		for i := range logs {
			apart, shared := queued(t, uint64(i), load)
			logs[i] = math.Log(shared / apart)
		}
		worlds = append(worlds, population(fmt.Sprintf("p99 of queues at load %v, same arrivals", load), logs))
	}
	return worlds
}

// covers is true if the 95 % interval of an experiment has the truth in it.
func (m ratioModel) covers(t *testing.T, random *rand.Rand, n int) bool {
	t.Helper()
	c := compare(t, stats.Figure{Pairs: m.pairs(random, n)})
	return c.Ratio.Low <= math.Exp(m.mean) && math.Exp(m.mean) <= c.Ratio.High
}

// An interval of 95 % has the true effect in it in 93 to 97 % of experiments
// with ten pairs. BCa does not get there (docs/decisions).
func TestCalibrationOfIntervals(t *testing.T) {
	table(t, "log ratios of the pairs", "t, 10 pairs", "t, 30 pairs", "BCa, 10 pairs")
	for _, m := range append(formulas(), measured(t)...) {
		ten := share(trials, func(random *rand.Rand) bool { return m.covers(t, random, tenPairs) })
		thirty := share(trials, func(random *rand.Rand) bool { return m.covers(t, random, 30) })
		values := make([]float64, tenPairs)
		bootstrap := share(bootstraps, func(random *rand.Rand) bool {
			for i := range values {
				values[i] = m.draw(random)
			}
			low, high := bca(values, random)
			return low <= m.mean && m.mean <= high
		})
		table(t, m.name, ten, thirty, bootstrap)
		if m.usual {
			within(t, m.name+": coverage of t", ten, 93, 97)
		}
	}
}

// Two arms that are the same are called different in 3 to 7 % of experiments.
func TestCalibrationAAgainstA(t *testing.T) {
	random := rand.New(rand.NewPCG(14, 0))
	tails, queues := make([]float64, blocks), make([]float64, blocks)
	for i := range blocks {
		tails[i] = tailed(t, random)
		_, queues[i] = queued(t, uint64(i), 0.8)
	}
	draw := func(of []float64) func(*rand.Rand) stats.Pair {
		return func(r *rand.Rand) stats.Pair {
			return stats.Pair{Base: of[r.IntN(blocks)], Other: of[r.IntN(blocks)]}
		}
	}
	table(t, "figures of both arms", "called different")
	for _, world := range []struct {
		name string
		pair func(*rand.Rand) stats.Pair
	}{
		{"lognormal", func(r *rand.Rand) stats.Pair {
			return stats.Pair{Base: math.Exp(0.1 * r.NormFloat64()), Other: math.Exp(0.1 * r.NormFloat64())}
		}},
		{"p99 of heavy tails", draw(tails)},
		{"p99 of a queue at load 0.8, other arrivals", draw(queues)},
	} {
		got := share(trials, func(random *rand.Rand) bool {
			pairs := make([]stats.Pair, tenPairs)
			for i := range pairs {
				pairs[i] = world.pair(random)
			}
			return differs(compare(t, stats.Figure{Pairs: pairs}))
		})
		table(t, world.name, got)
		within(t, world.name+": A against A", got, 3, 7)
	}
}

func differs(c stats.Comparison) bool { return c.Verdict == stats.Lower || c.Verdict == stats.Higher }

// Of eight secondary figures at least one is called different, though it is not, in at most 5 %
// of experiments: whether they go together or not, and whether or not some of them do differ.
func TestCalibrationOfFamilies(t *testing.T) {
	const figures = 8
	table(t, "8 secondary figures", "at least one error")
	for _, world := range []struct {
		name   string
		common float64 // how much of the noise is common to all figures
		differ int     // how many do differ, by 30 % and more
	}{
		{"independent, all equal", 0, 0},
		{"go together, all equal", 0.9, 0},
		{"independent, 4 differ", 0, 4},
		{"go together, 4 differ", 0.9, 4},
	} {
		got := share(trials, func(random *rand.Rand) bool {
			family := make([]stats.Figure, figures)
			for range tenPairs {
				common := random.NormFloat64()
				for i := range family {
					noise := world.common*common + math.Sqrt(1-world.common*world.common)*random.NormFloat64()
					effect := 0.0
					if i < world.differ {
						effect = 0.3 * float64(i+1)
					}
					family[i].Pairs = append(family[i].Pairs, stats.Pair{Base: 1, Other: math.Exp(effect + 0.1*noise)})
				}
			}
			j, err := stats.Judge(false, family...)
			testkit.Must(t, err)
			return slices.ContainsFunc(j[world.differ:], differs)
		})
		table(t, world.name, got)
		within(t, world.name, got, 0, 5.5) // 5 %, and what the number of trials leaves open
	}
}

// Arms that differ by just the margin are called about equal in at most 5 % of
// experiments; arms that are equal in nearly all, if the noise allows it.
func TestCalibrationOfEquality(t *testing.T) {
	table(t, "noise of a pair", "equal arms", "differ by 5 % up", "differ by 5 % down")
	for _, noise := range []float64{0.01, 0.03, 0.05, 0.1} {
		equal := func(effect float64) float64 {
			m := ratioModel{draw: func(r *rand.Rand) float64 { return effect + noise*r.NormFloat64() }}
			return share(trials, func(random *rand.Rand) bool {
				c := compare(t, stats.Figure{Pairs: m.pairs(random, tenPairs), Margin: margin})
				return c.Verdict == stats.AboutEqual
			})
		}
		same, up, down := equal(0), equal(math.Log1p(margin)), equal(-math.Log1p(margin))
		table(t, fmt.Sprintf("%v %%", 100*noise), same, up, down)
		within(t, "called equal at the margin, up", up, 0, 5.5)
		within(t, "called equal at the margin, down", down, 0, 5.5)
		if noise <= 0.03 {
			within(t, "called equal with little noise", same, 95, 100)
		}
	}
}

// The same of eight secondary figures, all of which differ by just the margin:
// at least one is called equal in at most 5 % of experiments.
func TestCalibrationOfEqualFamilies(t *testing.T) {
	m := ratioModel{draw: func(r *rand.Rand) float64 { return math.Log1p(margin) + 0.03*r.NormFloat64() }}
	got := share(trials, func(random *rand.Rand) bool {
		family := make([]stats.Figure, 8)
		for i := range family {
			family[i] = stats.Figure{Pairs: m.pairs(random, tenPairs), Margin: margin}
		}
		j, err := stats.Judge(false, family...)
		testkit.Must(t, err)
		return slices.ContainsFunc(j, func(c stats.Comparison) bool { return c.Verdict == stats.AboutEqual })
	})
	table(t, "8 secondary figures at the margin", "at least one called equal")
	table(t, "noise of a pair 3 %", got)
	within(t, "called equal at the margin, of eight", got, 0, 5.5)
}

// With blocks that have no answer the interval is about the median, and errs
// on the safe side. Unknown figures are made unknown here where it hurts most:
// those that speak against a difference are.
func TestCalibrationWithoutAnswers(t *testing.T) {
	table(t, "10 pairs, and", "called different", "interval has the median in it")
	for _, world := range []struct {
		name   string
		silent float64 // the chance of each block to have no answer
		hidden int     // how many of more pairs are unknown
	}{
		{"1 block in 50 without answers", 0.02, 0},
		{"1 block in 5 without answers", 0.2, 0},
		{"2 more, the highest of which are unknown", 0, 2},
	} {
		draw := func(random *rand.Rand) []stats.Pair {
			pairs := make([]stats.Pair, tenPairs+world.hidden)
			for i := range pairs {
				pairs[i] = silentPair(random, world.silent)
			}
			for range world.hidden {
				hideHighest(pairs)
			}
			return pairs
		}
		wrong, covered := 0.0, 0.0
		judged := share(trials, func(random *rand.Rand) bool {
			c := compare(t, stats.Figure{Pairs: draw(random)})
			if c.Verdict == stats.TooFewPairs || c.Method != stats.OrderStatistics {
				return false
			}
			if differs(c) {
				wrong++
			}
			if c.Ratio.Low <= 1 && 1 <= c.Ratio.High {
				covered++
			}
			return true
		})
		all := judged / 100 * trials
		table(t, world.name, 100*wrong/all, 100*covered/all)
		within(t, world.name+": A against A", 100*wrong/all, 0, 5)
		within(t, world.name+": coverage", 100*covered/all, 95, 100)
	}
}

// silentPair is a pair of equal arms, each of which may not answer.
func silentPair(random *rand.Rand, silent float64) stats.Pair {
	figure := func() float64 {
		if random.Float64() < silent {
			return math.Inf(1)
		}
		return math.Exp(0.1 * random.NormFloat64())
	}
	return stats.Pair{Base: figure(), Other: figure()}
}

// hideHighest makes the pair unknown that has the highest ratio.
func hideHighest(pairs []stats.Pair) {
	highest := -1
	for i, p := range pairs {
		if !math.IsNaN(p.Other) && (highest < 0 || p.Other/p.Base > pairs[highest].Other/pairs[highest].Base) {
			highest = i
		}
	}
	pairs[highest].Other = stats.Unknown()
}

// Ten pairs show a difference that is as large as the noise of a pair in three
// of four experiments; a smaller one takes more pairs.
func TestCalibrationOfPower(t *testing.T) {
	table(t, "noise of a pair", "effect", "shown with 10 pairs", "shown with 30 pairs")
	for _, tc := range []struct{ noise, effect float64 }{
		{0.05, 0.05}, {0.1, 0.05}, {0.1, 0.1}, {0.3, 0.1}, {0.3, 0.35},
	} {
		m := ratioModel{draw: func(r *rand.Rand) float64 { return math.Log1p(tc.effect) + tc.noise*r.NormFloat64() }}
		shown := func(n int) float64 {
			return share(trials, func(random *rand.Rand) bool {
				return compare(t, stats.Figure{Pairs: m.pairs(random, n)}).Verdict == stats.Higher
			})
		}
		ten := shown(tenPairs)
		table(t, fmt.Sprintf("%v %%", 100*tc.noise), fmt.Sprintf("%v %%", 100*tc.effect), ten, shown(30))
		if tc.effect >= tc.noise {
			within(t, "an effect as large as the noise is shown", ten, 75, 100)
		}
	}
}
