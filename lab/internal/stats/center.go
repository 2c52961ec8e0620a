package stats

import (
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Method is how the interval of a comparison was computed.
type Method string

const (
	// Student is the t interval of the mean of the log ratios, that is of the
	// geometric mean of the ratios.
	Student Method = "t on log ratios"
	// OrderStatistics is the interval of the median ratio that follows from
	// the sign test. It needs no ratio to be a number.
	OrderStatistics Method = "order statistics"
)

// center is what a sample says about the center of the log ratios.
type center interface {
	method() Method
	estimate() float64 // the center itself; NaN if it is not known
	// above and below return one-sided p-values: how likely data that lie so far above (below)
	// the value are, if the center is the value or lies below (above) it.
	above(value float64) float64
	below(value float64) float64
	// interval covers the center with this confidence, 0.95 for example. It
	// leaves out the value exactly if above or below is at most (1-confidence)/2.
	interval(confidence float64) (low, high float64)
}

// centerOf chooses the method by what there is: Student needs numbers. The
// choice does not look at which arm is better.
func centerOf(s sample) center {
	if s.finite() {
		return newStudent(s.known)
	}
	return order{s}
}

// difference is the two-sided p-value of "the center is 0": the arms are equal.
func difference(c center) float64 {
	return min(1, 2*min(c.above(0), c.below(0)))
}

// equivalence is the p-value of "the center lies margin or more away from 0".
// If it is small, the arms are about equal.
//
// Source: Schuirmann, "A comparison of the two one-sided tests procedure and
// the power approach for assessing the equivalence of average bioavailability",
// J. Pharmacokinetics and Biopharmaceutics 15 (1987).
func equivalence(c center, margin float64) float64 {
	return max(c.above(-margin), c.below(margin))
}

// student is the one-sample t method: the mean of n values is so many standard errors away from
// the true one, and how many is distributed as Student's t with n-1 degrees of freedom.
//
// On paired log ratios this is the paired t-test. The logarithm makes halves
// and doubles equally far from one, and turns a noise that multiplies, as the
// noise of a machine does, into one that adds.
//
// Source: Student, "The probable error of a mean", Biometrika 6 (1908).
type student struct {
	mean, err float64 // err is the standard error of the mean
	t         distuv.StudentsT
}

// newStudent takes two values or more, all of them finite.
func newStudent(values []float64) student {
	n := float64(len(values))
	mean, deviation := stat.MeanStdDev(values, nil)
	return student{
		mean: mean,
		err:  deviation / math.Sqrt(n),
		t:    distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1},
	}
}

func (student) method() Method { return Student }

func (s student) estimate() float64 { return s.mean }

func (s student) above(value float64) float64 { return s.beyond(s.mean - value) }

func (s student) below(value float64) float64 { return s.beyond(value - s.mean) }

// beyond is how likely a mean is that lies so far on one side of the truth.
func (s student) beyond(distance float64) float64 {
	switch {
	case s.err > 0:
		return s.t.Survival(distance / s.err)
	case distance > 0: // All values are equal, as in a simulation: no doubt is left.
		return 0
	default:
		return 1
	}
}

func (s student) interval(confidence float64) (low, high float64) {
	half := s.err * s.t.Quantile((1+confidence)/2)
	return s.mean - half, s.mean + half
}

// order tells about the median from the places of the values alone: each of n independent values
// lies above the median with a chance of one half, so that the number of those is binomial. The
// interval goes from the k-th smallest to the k-th largest value, with k so that both miss rarely
// enough. For 10 pairs and 95 % k is 2, and the interval holds in 97.9 % of all cases.
//
// An infinite value is one like any other here. An unknown one counts as what
// is worst for each statement: it may lie at either end of the interval, and
// is evidence of nothing. So what is said would be said whatever it was.
//
// Source: Conover, "Practical Nonparametric Statistics", 3rd edition, sections
// 3.2 and 3.4 (confidence interval for a quantile, sign test).
type order struct {
	sample
}

func (order) method() Method { return OrderStatistics }

func (o order) n() int { return len(o.known) + o.unknown }

// coins is how many of n fair coins show heads.
func (o order) coins() distuv.Binomial { return distuv.Binomial{N: float64(o.n()), P: 0.5} }

// at returns the value at a place, 0 being the smallest, if all unknown ones
// are as small as can be, or as large.
func (o order) at(place int, unknown float64) float64 {
	if math.IsInf(unknown, -1) {
		place -= o.unknown
	}
	switch {
	case place < 0:
		return math.Inf(-1)
	case place >= len(o.known):
		return math.Inf(1)
	default:
		return o.known[place]
	}
}

// estimate is the median, unless it depends on what is unknown.
func (o order) estimate() float64 {
	median := func(unknown float64) float64 {
		low, high := o.at((o.n()-1)/2, unknown), o.at(o.n()/2, unknown)
		if low == high { // also where both are infinite
			return low
		}
		return (low + high) / 2
	}
	least, most := median(math.Inf(-1)), median(math.Inf(1))
	if least != most {
		return math.NaN()
	}
	return least
}

func (o order) above(value float64) float64 {
	notAbove := sort.Search(len(o.known), func(i int) bool { return o.known[i] > value })
	return o.tail(o.unknown + notAbove)
}

func (o order) below(value float64) float64 {
	below := sort.SearchFloat64s(o.known, value)
	return o.tail(o.n() - below)
}

// tail is how likely it is that so few of n values, or fewer, lie on the wrong
// side of the median.
func (o order) tail(wrong int) float64 { return o.coins().CDF(float64(wrong)) }

func (o order) interval(confidence float64) (low, high float64) {
	k := 0 // places that are left out at each end
	for o.tail(k) <= (1-confidence)/2 {
		k++
	}
	if k == 0 {
		return math.Inf(-1), math.Inf(1)
	}
	return o.at(k-1, math.Inf(-1)), o.at(o.n()-k, math.Inf(1))
}

// Interval is a range of ratios.
//
// Shape: Low <= High, from 0 to infinity. In JSON an infinite end is null.
type Interval struct {
	Low, High float64
	// Middle is the best guess: the geometric mean of the ratios, or their
	// median. It is nil if that is infinite, or depends on what is unknown.
	Middle *float64
}

// MarshalJSON writes {"low":0.56,"middle":0.62,"high":0.69}.
func (i Interval) MarshalJSON() ([]byte, error) {
	end := func(ratio float64) *float64 {
		if math.IsInf(ratio, 1) {
			return nil
		}
		return &ratio
	}
	return json.Marshal(struct {
		Low    *float64 `json:"low"`
		Middle *float64 `json:"middle"`
		High   *float64 `json:"high"`
	}{end(i.Low), i.Middle, end(i.High)})
}

// Words says the conclusion in plain words: "p99 lower by 31–44 %", "p99: no difference shown (3
// % lower to 8 % higher)", "p99 about equal (within 5 %)", "p99: too few pairs (8, needs 10)". It
// speaks of the arm Other. What is said of blocks without answers is in Silence.
func (c Comparison) Words() string {
	switch c.Verdict {
	case Lower, Higher:
		return c.Figure + " " + c.Ratio.words()
	case AboutEqual:
		words := fmt.Sprintf("%s about equal (within %s %%)", c.Figure, number(100*c.Margin, 0))
		if c.P <= Alpha {
			words += ", " + c.Ratio.words()
		}
		return words
	case NoDifference:
		return fmt.Sprintf("%s: no difference shown (%s)", c.Figure, c.Ratio.span())
	default:
		return fmt.Sprintf("%s: too few pairs (%s, needs %d)", c.Figure, c.have(), MinPairs)
	}
}

func (c Comparison) have() string {
	if c.Known == c.Pairs {
		return strconv.Itoa(c.Pairs)
	}
	return fmt.Sprintf("%d of %d known", c.Known, c.Pairs)
}

// Silence says in how many blocks an arm did not answer any call: "cabrank
// answered no call in 2 of 10 runs". It is empty if there are none.
func (c Comparison) Silence(base, other string) string {
	var lines []string
	for _, arm := range []struct {
		name   string
		silent int
	}{{base, c.BaseSilent}, {other, c.OtherSilent}} {
		if arm.silent > 0 {
			lines = append(lines, fmt.Sprintf("%s answered no call in %d of %d runs", arm.name, arm.silent, c.Pairs))
		}
	}
	return strings.Join(lines, ", ")
}

// words says a range that lies on one side of one.
func (i Interval) words() string {
	switch {
	case i.High == 0:
		return "lower without bound"
	case math.IsInf(i.Low, 1):
		return "higher without bound"
	case i.High < 1 && i.Low == 0:
		return "lower by at least " + percent(1-i.High)
	case i.High < 1:
		return "lower by " + percents(1-i.High, 1-i.Low)
	case math.IsInf(i.High, 1):
		return "higher by at least " + percent(i.Low-1)
	case i.Low >= 2:
		return between(number(i.Low, 1), number(i.High, 1)) + " times as high"
	case i.High >= 10: // percentages of four digits say nothing to anybody
		return between(number(i.Low, 2), number(i.High, 1)) + " times as high"
	default:
		return "higher by " + percents(i.Low-1, i.High-1)
	}
}

// span says a range that has one in it, or may have.
func (i Interval) span() string {
	return side(i.Low) + " to " + side(i.High)
}

// side says one end of a range, from the point of view of one.
func side(ratio float64) string {
	switch {
	case ratio == 0:
		return "any amount lower"
	case math.IsInf(ratio, 1):
		return "any amount higher"
	case ratio == 1:
		return "0 %"
	case ratio < 1:
		return percent(1-ratio) + " lower"
	case ratio >= 2:
		return number(ratio, 1) + " times as high"
	default:
		return percent(ratio-1) + " higher"
	}
}

// percents says a range of shares: "31–44 %". Both have so many decimals that
// the smaller one is not rounded to nothing.
func percents(small, large float64) string {
	low, high := 100*small, 100*large
	places := decimals(low)
	if number(low, places) == number(0, places) {
		return "at most " + number(high, decimals(high)) + " %"
	}
	return between(number(low, places), number(high, places)) + " %"
}

func percent(share float64) string {
	return number(100*share, decimals(100*share)) + " %"
}

// decimals is how many figures behind the point a percentage deserves: two at
// most, for nobody measures more.
func decimals(percent float64) int {
	switch {
	case percent >= 1 || percent == 0:
		return 0
	case percent >= 0.1:
		return 1
	default:
		return 2
	}
}

// number writes x with at most so many decimals, without zeros behind them,
// and in powers of ten what is too large to count.
func number(x float64, decimals int) string {
	if x >= 1e6 {
		return strconv.FormatFloat(x, 'e', 1, 64)
	}
	scale := math.Pow10(decimals)
	return strconv.FormatFloat(math.Round(x*scale)/scale, 'f', -1, 64)
}

// between joins the ends of a range, unless they look the same.
func between(low, high string) string {
	if low == high {
		return low
	}
	return low + "–" + high
}
