//go:build real || soak

package real_test

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

// sample is one line of the metrics page, or one histogram.
type sample struct {
	labels map[string]string
	value  float64 // of a histogram the number of observations
}

// metricsText returns the metrics page.
func (c *Cabrank) metricsText() string {
	c.t.Helper()
	client := http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	answer, err := client.Get("http://" + c.MetricsAddr + "/metrics")
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		c.t.Fatalf("the metrics page: %s, %v", answer.Status, err)
	}
	return string(text)
}

// samples reads the metrics page as Prometheus does, by family.
func (c *Cabrank) samples() map[string][]sample {
	c.t.Helper()
	text := c.metricsText()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		c.t.Fatalf("the metrics page cannot be parsed: %v\n%s", err, text)
	}
	samples := map[string][]sample{}
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
			samples[name] = append(samples[name], sample{labels, value})
		}
	}
	return samples
}

// metric returns the sum of a family's samples that have the given labels,
// named in pairs.
func (c *Cabrank) metric(name string, labels ...string) float64 {
	c.t.Helper()
	sum := 0.0
	for _, s := range c.samples()[name] {
		matches := true
		for pair := range slices.Chunk(labels, 2) {
			matches = matches && s.labels[pair[0]] == pair[1]
		}
		if matches {
			sum += s.value
		}
	}
	return sum
}

// waitMetric waits until the sum of a family's samples is as wanted.
func (c *Cabrank) waitMetric(name string, want float64, labels ...string) {
	c.t.Helper()
	testkit.Eventually(c.t, patience, fmt.Sprintf("%s%v to be %v", name, labels, want), func() bool {
		return c.metric(name, labels...) == want
	})
}
