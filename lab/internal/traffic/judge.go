package traffic

import (
	"fmt"
	"time"
)

const (
	mostLagShare = 0.10 // of a latency
	mostBusy     = 0.85 // of a core
	// lateBeyond is the share of the calls beyond a quantile that may have been sent
	// late: each of them may have held up others.
	lateBeyond = 0.10

	lagDigits = time.Microsecond // in words
)

// GeneratorLimits says in a line why the generator, not the service, may have set the
// figures of a record, or "". Such a record is kept and marked, and not judged.
//
// The rule: the core of the generator was busy for 85 % of the time or more, or the
// send lag is above a tenth of the latency that it is in: of the mean, or of a quantile
// that there are calls enough for. busy is that share, 0 to 1, of the busiest core of the
// generator; 0 if not known.
func (r *Record) GeneratorLimits(busy float64) string {
	if why := TooBusy(busy); why != "" {
		return why
	}
	latencies := r.Latency()
	for _, share := range []float64{0.5, 0.9, 0.95, 0.99, 0.999} {
		q, lag := latencies.Quantile(share), r.LagAt(share)
		if most := mostLag(q.Value); !q.TooFew && lag > most {
			return fmt.Sprintf("%s: it is %v for the slowest calls, %v is allowed (a tenth of p%g)", SentLate, lag.Round(lagDigits), most.Round(lagDigits), 100*share)
		}
	}
	return r.LateOnAverage()
}

// mostLag is how much of a latency may be send lag.
func mostLag(latency time.Duration) time.Duration {
	return time.Duration(mostLagShare * float64(latency))
}

// LateOnAverage says in a line that the mean latency has more send lag in it than a tenth,
// or "". Then no figure of the record is judged, those without a latency included.
func (r *Record) LateOnAverage() string {
	lag, most := r.Lag.Mean(), mostLag(r.Latency().Mean())
	if lag <= most {
		return ""
	}
	return fmt.Sprintf("%s: it is %v on average, %v is allowed (a tenth of the mean)", SentLate, lag.Round(lagDigits), most.Round(lagDigits))
}

// LateAt reports whether a quantile of the latencies has more send lag in it than a tenth.
func (r *Record) LateAt(share float64, latency time.Duration) bool {
	return r.LagAt(share) > mostLag(latency)
}

// SentLate is how GeneratorLimits begins where it speaks of send lag.
const SentLate = "calls were sent late by the generator"

// TooBusy says in a line that the generator had too little CPU, or "".
func TooBusy(busy float64) string {
	if busy < mostBusy {
		return ""
	}
	return fmt.Sprintf("the generator's core was %.0f %% busy, %.0f %% are allowed", 100*busy, 100*mostBusy)
}

// LagAt is how much of a quantile of the latencies may be send lag: a tenth of the calls
// beyond the quantile were sent later than that. 1 is the longest.
func (r *Record) LagAt(share float64) time.Duration { return r.Lag.At(1 - lateBeyond*(1-share)) }
