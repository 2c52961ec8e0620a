package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cabrank/cabrank/internal/discover"
)

// upstreamCollector turns the sources that are about endpoints elsewhere into
// metrics at the time of a scrape.
type upstreamCollector struct {
	sources Sources

	state, lookups, addresses *prometheus.Desc
}

func newUpstreamCollector(sources Sources) *upstreamCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("cabrank_"+name, help, labels, nil)
	}
	return &upstreamCollector{
		sources:   sources,
		state:     desc("upstream_state", "1 for the state that an endpoint elsewhere is in, 0 for the others.", "worker", "state"),
		lookups:   desc("dns_lookups_total", "Lookups of a name among the upstreams by result.", "name", "result"),
		addresses: desc("dns_addresses", "Endpoints that a name among the upstreams stands for now.", "name"),
	}
}

// Describe implements prometheus.Collector.
func (c *upstreamCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.state, c.lookups, c.addresses} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *upstreamCollector) Collect(metrics chan<- prometheus.Metric) {
	out := emitter{metrics}
	if c.sources.Upstreams != nil {
		for _, u := range c.sources.Upstreams() {
			for _, state := range discover.States() {
				out.whether(c.state, state == u.State, u.Name, state.String())
			}
		}
	}
	if c.sources.Lookups != nil {
		for _, of := range c.sources.Lookups() {
			out.gauge(c.addresses, float64(of.Addresses), of.Name)
			for result, lookups := range of.Results {
				out.counter(c.lookups, lookups, of.Name, result)
			}
		}
	}
}
