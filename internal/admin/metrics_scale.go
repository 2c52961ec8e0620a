package admin

import "github.com/prometheus/client_golang/prometheus"

// ScaleSample is how many workers there should be, and why.
type ScaleSample struct {
	Wanted    int
	Adapts    bool              // the number follows the load; the rest is empty if not
	Load      float64           // slots that the calls keep busy
	Decisions map[string]uint64 // since the process began, by reason
}

// scaleCollector turns the source that is about the number of workers into
// metrics at the time of a scrape.
type scaleCollector struct {
	sources Sources

	wanted, load, decisions *prometheus.Desc
}

func newScaleCollector(sources Sources) *scaleCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("cabrank_"+name, help, labels, nil)
	}
	return &scaleCollector{
		sources:   sources,
		wanted:    desc("workers_wanted", "Workers that there should be."),
		load:      desc("load_slots", "Slots that the calls keep busy on average, those that wait or are refused included."),
		decisions: desc("scale_decisions_total", "Decisions about the number of workers by reason.", "reason"),
	}
}

// Describe implements prometheus.Collector.
func (c *scaleCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.wanted, c.load, c.decisions} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *scaleCollector) Collect(metrics chan<- prometheus.Metric) {
	if c.sources.Scale == nil {
		return
	}
	out, sample := emitter{metrics}, c.sources.Scale()
	out.gauge(c.wanted, float64(sample.Wanted))
	if !sample.Adapts {
		return
	}
	out.gauge(c.load, sample.Load)
	for reason, decisions := range sample.Decisions {
		out.counter(c.decisions, decisions, reason)
	}
}
