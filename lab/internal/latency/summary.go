package latency

import "time"

// Summary is what a report tells about a histogram. In JSON all durations are
// nanoseconds.
type Summary struct {
	// Count is how many calls were recorded.
	Count int64 `json:"count"`
	// AtBound is how many of them took Bound or longer.
	AtBound int64 `json:"at_bound"`
	// Mean, Min and Max are 0 if Count is.
	Mean time.Duration `json:"mean_ns"`
	Min  time.Duration `json:"min_ns"`
	Max  time.Duration `json:"max_ns"`
	// Quantiles are p50, p90, p95, p99 and p99.9, in this order.
	Quantiles []Quantile `json:"quantiles"`
}

// Summary returns the figures of all that was recorded so far.
func (h *Histogram) Summary() Summary {
	s := Summary{Count: h.Count(), AtBound: h.AtBound(), Mean: h.Mean(), Min: h.Min(), Max: h.Max()}
	for _, share := range []float64{0.5, 0.9, 0.95, 0.99, 0.999} {
		s.Quantiles = append(s.Quantiles, h.Quantile(share))
	}
	return s
}
