package admin

import "github.com/prometheus/client_golang/prometheus"

// UpstreamSample is the state of one endpoint that someone else runs.
type UpstreamSample struct {
	Worker string // its address, as the other metrics have it
	State  string // one of Sources.UpstreamStates
}

// LookupSample is what became of the lookups of one name.
type LookupSample struct {
	Name      string            // as it was written: "dns:NAME:PORT" or "srv:NAME"
	Addresses int               // endpoints that it stands for now
	Results   map[string]uint64 // lookups since the process began, by result
}

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
		for _, sample := range c.sources.Upstreams() {
			for _, state := range c.sources.UpstreamStates {
				value := 0.0
				if state == sample.State {
					value = 1
				}
				out.gauge(c.state, value, sample.Worker, state)
			}
		}
	}
	if c.sources.Lookups != nil {
		for _, sample := range c.sources.Lookups() {
			out.gauge(c.addresses, float64(sample.Addresses), sample.Name)
			for result, lookups := range sample.Results {
				out.counter(c.lookups, lookups, sample.Name, result)
			}
		}
	}
}
