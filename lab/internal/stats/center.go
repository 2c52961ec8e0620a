package stats

import (
	"math"
	"sort"

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
	// method names how it is done.
	method() Method
	// estimate is the center itself; NaN if it is not known.
	estimate() float64
	// above and below return one-sided p-values: how likely data that lie so
	// far above (below) the value are, if the center is the value or lies
	// below (above) it.
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

// student is the one-sample t method: the mean of n values is so many standard
// errors away from the true one, and how many is distributed as Student's t
// with n-1 degrees of freedom.
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

// order tells about the median from the places of the values alone: each of n
// independent values lies above the median with a chance of one half, so that
// the number of those is binomial. The interval goes from the k-th smallest to
// the k-th largest value, with k so that both miss rarely enough. For 10 pairs
// and 95 % k is 2, and the interval holds in 97.9 % of all cases.
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
