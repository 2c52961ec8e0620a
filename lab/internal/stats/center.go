package stats

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
