package traffic

import (
	"fmt"
	"time"

	"github.com/cabrank/cabrank/lab/internal/latency"
)

const (
	mostLag      = time.Millisecond
	mostLagShare = 0.10 // of the p50 of the latencies
	mostBusy     = 0.85 // of a core

	lagDigits = time.Microsecond // in words
)

// Rankable says in a line why two records must not be set beside each other, or nil.
// A closed loop waits for answers: while a service is slow it asks less, so that its
// latencies leave out what the callers of an open loop would have waited.
func Rankable(a, b *Record) error {
	if a.Loop != b.Loop {
		return fmt.Errorf("one is of a closed loop, the other of an open loop: their latencies cannot be ranked")
	}
	return nil
}

// GeneratorLimits says in a line why the generator, not the service, may have set the
// figures of a record, or "". Such a record is kept and marked, and not judged.
//
// The rule: the p99 of the send lag is above 1 ms or above 10 % of the p50 of the
// latencies, or the core of the generator was busy for 85 % of the time or more. busy
// is that share, 0 to 1, of the busiest core of the generator; 0 if not known.
// With too few calls for p99 the highest quantile that can be told decides,
// and below 200 calls the longest lag.
func (r *Record) GeneratorLimits(busy float64) string {
	if busy >= mostBusy {
		return fmt.Sprintf("the generator's core was %.0f %% busy, %.0f %% are allowed", 100*busy, 100*mostBusy)
	}
	if r.Lag.Count() == 0 {
		return ""
	}
	name, lag := highest(r.Lag)
	if lag > mostLag {
		return fmt.Sprintf("calls were sent late by the generator: %s of the send lag is %v, %v is allowed", name, lag.Round(lagDigits), mostLag)
	}
	latencies := r.Latency()
	p50 := latencies.Quantile(0.5)
	if p50.TooFew {
		return ""
	}
	if allowed := time.Duration(mostLagShare * float64(p50.Value)); lag > allowed {
		return fmt.Sprintf("calls were sent late by the generator: %s of the send lag is %v, %v is allowed (a tenth of p50)", name, lag.Round(lagDigits), allowed.Round(lagDigits))
	}
	return ""
}

// VolleyLimits is GeneratorLimits for calls that are due at the same moment. They go out
// one after the other, so that the last is late by what sending all of them takes: a
// tenth of the p50 of the latencies is allowed, however long that is.
func (r *Record) VolleyLimits(busy float64) string {
	limit := r.GeneratorLimits(busy)
	if limit == "" || busy >= mostBusy {
		return limit
	}
	latencies := r.Latency()
	p50 := latencies.Quantile(0.5)
	name, lag := highest(r.Lag)
	allowed := time.Duration(mostLagShare * float64(p50.Value))
	if !p50.TooFew && lag <= allowed {
		return ""
	}
	if p50.TooFew {
		return limit
	}
	return fmt.Sprintf("it takes long to send so many calls: %s of the send lag is %v, %v is allowed (a tenth of p50)", name, lag.Round(lagDigits), allowed.Round(lagDigits))
}

// SlightlyLate reports whether GeneratorLimits speaks of a lag of 1 ms at most, that only
// matters since the service is fast. Latencies have the lag in them: they are too high,
// by Lag.Max() at most, and not too low.
func (r *Record) SlightlyLate(busy float64) bool {
	if busy >= mostBusy || r.GeneratorLimits(busy) == "" {
		return false
	}
	_, lag := highest(r.Lag)
	return lag <= mostLag
}

// highest returns p99, or the highest quantile below it that there are calls enough for.
func highest(h *latency.Histogram) (name string, value time.Duration) {
	for _, share := range []float64{0.99, 0.95, 0.9, 0.5} {
		if q := h.Quantile(share); !q.TooFew {
			return fmt.Sprintf("p%.0f", 100*share), q.Value
		}
	}
	return "the longest", h.Max()
}
