package scale

import "math"

const (
	// headroom is the beta of square-root staffing: R + beta sqrt(R) slots for a
	// load of R. TestHeadroom shows the cost and gain of other values.
	headroom = 1.5
	// roomToGo is the beta that has to be left with one worker less: so a load that
	// wavers between two numbers of workers stays with the larger one.
	roomToGo = 2.0
	// doubtRoom is how many standard deviations above its estimate the load may be when
	// a worker goes.
	doubtRoom = 3.0
	// roomToShed is the beta beyond which refused calls do not ask for workers any more:
	// there chance is not the cause, their deadlines are too short.
	roomToShed = 4.0
	// fullest is the highest planned utilization, even with so many slots that chance is
	// small: the load is not known more exactly.
	fullest = 0.9
	// mostPeaked bounds the room for bursts: R + 2 beta sqrt(R).
	mostPeaked = 4.0
)

// policy is the room that a Scaler leaves; simulations try other values.
type policy struct{ headroom, roomToGo float64 }

// staff returns how many slots a load needs with the headroom beta.
//
// The number of calls at a time has the variance R if callers are independent, and
// R (1 + dispersion)/2 if calls come in bursts that are shorter than a call (the
// peakedness of teletraffic theory).
func staff(slots, dispersion, beta float64) float64 {
	peaked := math.Min((1+dispersion)/2, mostPeaked)
	return math.Max(slots+beta*math.Sqrt(peaked*slots), slots/fullest)
}

// workers returns how many workers have so many slots, and bounds the result for
// nonsensical values.
func workers(slots, each float64) int {
	const beyondAnyMaximum = 1 << 20
	if n := math.Ceil(slots/math.Max(each, 1) - 1e-9); n < beyondAnyMaximum {
		return max(int(n), 0)
	}
	return beyondAnyMaximum
}
