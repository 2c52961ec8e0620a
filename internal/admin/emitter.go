package admin

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cabrank/cabrank/internal/stats"
)

// emitter sends constant metrics to a scrape. What cannot be a metric becomes
// an error of that scrape, never a panic: a crash on a page that is only for
// looking would take the calls with it.
type emitter struct{ metrics chan<- prometheus.Metric }

func (e emitter) gauge(desc *prometheus.Desc, value float64, labels ...string) {
	metric, err := prometheus.NewConstMetric(desc, prometheus.GaugeValue, value, printable(labels)...)
	e.send(desc, metric, err)
}

// whether is 1 or 0.
func (e emitter) whether(desc *prometheus.Desc, is bool, labels ...string) {
	value := 0.0
	if is {
		value = 1
	}
	e.gauge(desc, value, labels...)
}

func (e emitter) counter(desc *prometheus.Desc, value uint64, labels ...string) {
	metric, err := prometheus.NewConstMetric(desc, prometheus.CounterValue, float64(value), printable(labels)...)
	e.send(desc, metric, err)
}

// histogram adds up the counts, which Prometheus wants cumulative. Counts
// beyond the bounds are the +Inf bucket, which is implied by the total.
func (e emitter) histogram(desc *prometheus.Desc, h stats.Histogram, labels ...string) {
	buckets := make(map[float64]uint64, len(h.Bounds))
	var total uint64
	for i, count := range h.Counts {
		total += count
		if i < len(h.Bounds) {
			buckets[h.Bounds[i]] = total
		}
	}
	metric, err := prometheus.NewConstHistogram(desc, total, h.Sum, buckets, printable(labels)...)
	if shown := h.Exemplars; err == nil && len(shown) > 0 {
		metric, err = prometheus.NewMetricWithExemplars(metric, exemplars(shown)...)
	}
	e.send(desc, metric, err)
}

func exemplars(of []stats.Exemplar) (all []prometheus.Exemplar) {
	for _, e := range of {
		all = append(all, prometheus.Exemplar{Value: e.Seconds, Timestamp: e.At, Labels: prometheus.Labels{"trace_id": e.Trace, "span_id": e.Span}})
	}
	return all
}

func (e emitter) send(desc *prometheus.Desc, metric prometheus.Metric, err error) {
	if err != nil {
		metric = prometheus.NewInvalidMetric(desc, err)
	}
	e.metrics <- metric
}

// printable makes label values UTF-8, which Prometheus insists on: a method is
// what some caller wrote. Bytes that are none become \xNN, so that different
// values stay different.
func printable(labels []string) []string {
	fixed := make([]string, len(labels))
	for i, label := range labels {
		fixed[i] = label
		if !utf8.ValidString(label) {
			fixed[i] = escapeInvalid(label)
		}
	}
	return fixed
}

func escapeInvalid(text string) string {
	var escaped strings.Builder
	for len(text) > 0 {
		char, size := utf8.DecodeRuneInString(text)
		if char == utf8.RuneError && size == 1 {
			fmt.Fprintf(&escaped, `\x%02x`, text[0])
		} else {
			escaped.WriteString(text[:size])
		}
		text = text[size:]
	}
	return escaped.String()
}
