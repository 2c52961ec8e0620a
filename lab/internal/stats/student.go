package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

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
