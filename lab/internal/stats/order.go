package stats

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

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
