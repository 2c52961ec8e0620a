package stats

import (
	"net/http"
	"strconv"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
)

// Histogram counts durations in fixed buckets.
//
// Shape: Counts[i] holds the observations that are <= Bounds[i] and above the
// bound before it; the last element of Counts (one more than Bounds) holds the
// rest. Units: Bounds and Sum are seconds.
type Histogram struct {
	Bounds    []float64
	Counts    []uint64
	Sum       float64
	Exemplars []Exemplar // at most one of each bucket and shard
}

// Exemplar is an observation of a call whose spans are recorded.
type Exemplar struct {
	Trace, Span string // ids, hexadecimal
	Seconds     float64
	At          time.Time
}

const ms = time.Millisecond

// bounds are the upper ends of the buckets.
var bounds = [...]time.Duration{
	ms / 2, ms, 5 * ms / 2, 5 * ms, 10 * ms, 25 * ms, 50 * ms, 100 * ms, 250 * ms, 500 * ms,
	1000 * ms, 2500 * ms, 5000 * ms, 10_000 * ms, 30_000 * ms, 60_000 * ms,
}

// histogram counts in buckets by bounds; the last one has the rest.
type histogram struct {
	counts    [len(bounds) + 1]uint64
	sum       time.Duration
	exemplars *[len(bounds) + 1]Exemplar // the last of each bucket; nil: none yet
}

func (h *histogram) observe(d time.Duration) (bucket int) {
	h.sum += d
	for bucket < len(bounds) && d > bounds[bucket] {
		bucket++
	}
	h.counts[bucket]++
	return bucket
}

// show keeps an exemplar of a bucket.
func (h *histogram) show(bucket int, e Exemplar) {
	if h.exemplars == nil {
		h.exemplars = new([len(bounds) + 1]Exemplar)
	}
	h.exemplars[bucket] = e
}

func newHistogram() Histogram {
	h := Histogram{Counts: make([]uint64, len(bounds)+1)}
	for _, bound := range bounds {
		h.Bounds = append(h.Bounds, bound.Seconds())
	}
	return h
}

func (h *histogram) addTo(all *Histogram) {
	for i, n := range h.counts {
		all.Counts[i] += n
	}
	all.Sum += h.sum.Seconds()
	if h.exemplars == nil {
		return
	}
	for _, e := range h.exemplars {
		if e.Trace != "" {
			all.Exemplars = append(all.Exemplars, e)
		}
	}
}

// Outcomes counts finished calls by status.
//
// Concurrency: guarded by the lock of its owner.
type Outcomes struct {
	codes [grpcwire.NumCodes]uint64
	http  map[int]uint64 // calls that are not gRPC, by status
}

// Count counts a call by its HTTP status, or by its gRPC code if that is 0.
func (o *Outcomes) Count(code grpcwire.Code, status int) {
	if status == 0 {
		o.codes[code]++
		return
	}
	if o.http == nil {
		o.http = make(map[int]uint64)
	}
	o.http[status]++
}

// AddTo adds the counts by the label of their code.
func (o *Outcomes) AddTo(all map[string]uint64) {
	for code, n := range o.codes {
		if n > 0 {
			all[grpcwire.Code(code).String()] += n
		}
	}
	for status, n := range o.http {
		label := otherMethod
		if http.StatusText(status) != "" { // a bounded label: the statuses that exist
			label = strconv.Itoa(status)
		}
		all[label] += n
	}
}
