package harness

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Sample is one line of the metrics page, or one histogram.
type Sample struct {
	Labels map[string]string
	Value  float64 // of a histogram the number of observations
}

// MetricsText returns the metrics page.
func (c *Cabrank) MetricsText() string {
	c.T.Helper()
	client := http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	answer, err := client.Get("http://" + c.MetricsAddr + "/metrics")
	testkit.Must(c.T, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	testkit.Need(c.T, err == nil && answer.StatusCode == http.StatusOK, "the metrics page: %s, %v", answer.Status, err)
	return string(text)
}

// Samples reads the metrics page as Prometheus does, by family.
func (c *Cabrank) Samples() map[string][]Sample {
	c.T.Helper()
	text := c.MetricsText()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	testkit.Need(c.T, err == nil, "the metrics page cannot be parsed: %v\n%s", err, text)
	samples := map[string][]Sample{}
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range metric.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			value := metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + metric.GetUntyped().GetValue()
			if histogram := metric.GetHistogram(); histogram != nil {
				value = float64(histogram.GetSampleCount())
			}
			samples[name] = append(samples[name], Sample{labels, value})
		}
	}
	return samples
}

// Metric returns the sum of a family's samples that have the given labels,
// named in pairs.
func (c *Cabrank) Metric(name string, labels ...string) float64 {
	c.T.Helper()
	sum := 0.0
	for _, s := range c.Samples()[name] {
		matches := true
		for pair := range slices.Chunk(labels, 2) {
			matches = matches && s.Labels[pair[0]] == pair[1]
		}
		if matches {
			sum += s.Value
		}
	}
	return sum
}

// WaitMetric waits until the sum of a family's samples is as wanted.
func (c *Cabrank) WaitMetric(name string, want float64, labels ...string) {
	c.T.Helper()
	testkit.Eventually(c.T, Patience, fmt.Sprintf("%s%v to be %v", name, labels, want), func() bool {
		return c.Metric(name, labels...) == want
	})
}

// WaitGone waits until an endpoint is no more.
func (c *Cabrank) WaitGone(endpoint string) {
	c.T.Helper()
	testkit.Eventually(c.T, Patience, "the end of "+endpoint, func() bool {
		for _, s := range c.Samples()["cabrank_slots"] {
			if s.Labels["worker"] == endpoint {
				return false
			}
		}
		return c.Metric("cabrank_upstream_state", "worker", endpoint) == 0
	})
}

// WaitLookups waits until so many more lookups of a name ended so.
func (c *Cabrank) WaitLookups(name, result string, more float64) {
	c.T.Helper()
	before := c.Metric("cabrank_dns_lookups_total", "name", name, "result", result)
	testkit.Eventually(c.T, Patience, "lookups that are "+result, func() bool {
		return c.Metric("cabrank_dns_lookups_total", "name", name, "result", result) >= before+more
	})
}
