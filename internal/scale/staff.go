package scale

import "math"

const (
	// headroom is the beta of square-root staffing: R + beta sqrt(R) slots for a
	// load of R. TestHeadroom shows what others would cost and gain.
	headroom = 1.5
	// roomToGo is the beta that has to be left with one worker less: a load that
	// wavers between two numbers of workers then stays with the larger one.
	roomToGo = 2.0
	// doubtRoom is how many standard deviations more than is measured the load
	// may be when a worker goes.
	doubtRoom = 3.0
	// roomToShed is the beta beyond which calls that are refused ask in vain:
	// chance does not refuse them there, their deadlines are too short.
	roomToShed = 4.0
	// fullest is the highest utilization that is planned, however many slots make
	// chance small: loads are not known better than that.
	fullest = 0.9
	// mostPeaked bounds what bursts can ask for: R + 2 beta sqrt(R).
	mostPeaked = 4.0
)

// policy is how much room a Scaler leaves; simulations try other values.
type policy struct{ headroom, roomToGo float64 }

// staff returns how many slots a load needs with this much headroom.
//
// The number of calls at a time has the variance R if their callers know nothing
// of each other, and R (1 + dispersion)/2 if they come in bursts that are shorter
// than a call (the peakedness of teletraffic theory).
func staff(slots, dispersion, beta float64) float64 {
	peaked := math.Min((1+dispersion)/2, mostPeaked)
	return math.Max(slots+beta*math.Sqrt(peaked*slots), slots/fullest)
}

// workers returns how many workers have so many slots, and bounds what follows
// from nonsense.
func workers(slots, each float64) int {
	const beyondAnyMaximum = 1 << 20
	if n := math.Ceil(slots/math.Max(each, 1) - 1e-9); n < beyondAnyMaximum {
		return max(int(n), 0)
	}
	return beyondAnyMaximum
}
