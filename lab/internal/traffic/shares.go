package traffic

import "math"

const (
	// mostWorkers is how many workers are told apart. Their names come from
	// answers, so that anything may be in them.
	mostWorkers = 1000
	// mostWorkersByTime is the same for each interval of a timeline, of which there
	// are many.
	mostWorkersByTime = 100
	// mostName is how many bytes of a name are kept.
	mostName = 200
	// Others counts for the workers above those.
	Others = "(others)"
)

// Shares is how many calls each worker has answered, by name. Calls whose worker is
// not known are not in it.
type Shares map[string]int64

// add counts calls of a worker, with at most so many workers told apart.
func (s Shares) add(worker string, calls int64, most int) {
	if len(worker) > mostName {
		worker = worker[:mostName]
	}
	if _, known := s[worker]; !known && len(s) >= most {
		worker = Others
	}
	s[worker] += calls
}

// Variation is the coefficient of variation of the shares: their standard deviation
// over their mean, 0 when all are equal. workers is how many there are, so that those
// without any call count; it is ignored if fewer than those seen. 0 of nothing.
func (s Shares) Variation(workers int) float64 {
	n := float64(max(workers, len(s)))
	var sum, squares float64
	for _, calls := range s {
		sum += float64(calls)
	}
	if sum == 0 {
		return 0
	}
	mean := sum / n
	for _, calls := range s {
		squares += (float64(calls) - mean) * (float64(calls) - mean)
	}
	squares += (n - float64(len(s))) * mean * mean
	return math.Sqrt(squares/n) / mean
}
