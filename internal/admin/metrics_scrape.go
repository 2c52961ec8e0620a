package admin

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/cabrank/cabrank/internal/scrape"
)

// ScrapeSample is how the workers' own pages are read.
type ScrapeSample struct {
	Results map[string]uint64 // pages that were asked for since the process began, by result
	Stats   scrape.Stats
}

// scrapeCollector tells of it at the time of a scrape.
type scrapeCollector struct {
	sources Sources

	pages, series, conflicts *prometheus.Desc
}

func newScrapeCollector(sources Sources) *scrapeCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("cabrank_"+name, help, labels, nil)
	}
	return &scrapeCollector{
		sources:   sources,
		pages:     desc("worker_pages_total", "Metrics pages of workers that were asked for, by result.", "result"),
		series:    desc("worker_series", "Metrics of workers that are on this page now; a histogram is one."),
		conflicts: desc("worker_metric_conflicts_total", "Metrics of workers that could not be added up as they were shown, by what was odd.", "kind"),
	}
}

// Describe implements prometheus.Collector.
func (c *scrapeCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.pages, c.series, c.conflicts} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *scrapeCollector) Collect(metrics chan<- prometheus.Metric) {
	if c.sources.Scrapes == nil {
		return
	}
	sample := c.sources.Scrapes()
	for result, n := range sample.Results {
		metrics <- prometheus.MustNewConstMetric(c.pages, prometheus.CounterValue, float64(n), result)
	}
	metrics <- prometheus.MustNewConstMetric(c.series, prometheus.GaugeValue, float64(sample.Stats.Series))
	odd := sample.Stats.Conflicts
	for kind, n := range map[string]uint64{
		"type": odd.Type, "help": odd.Help, "bounds": odd.Bounds, "duplicate": odd.Duplicates, "series": odd.Series, "bytes": odd.Bytes, "labels": odd.Labels,
	} {
		metrics <- prometheus.MustNewConstMetric(c.conflicts, prometheus.CounterValue, float64(n), kind)
	}
}

// pages bounds the memory that pages take while they are made and sent. One of all that
// may be held is as large as three quarters of what the workers' pages may take.
type pages struct {
	scrapes func() ScrapeSample // nil: there are none
	mu      sync.Mutex
	n       int
	bytes   int64 // that are held of what they show
}

// enter reports whether another page may be made. One always may.
func (p *pages) enter() (leave func(), ok bool) {
	var stats scrape.Stats
	if p.scrapes != nil {
		stats = p.scrapes().Stats
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n > 0 && (p.n == maxScrapes || p.bytes+stats.Held > stats.Memory/pagesShare) {
		return nil, false
	}
	p.n++
	p.bytes += stats.Held
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.n--
		p.bytes -= stats.Held
	}, true
}

// joined is a page of cabrank's own metrics and those of its workers.
type joined struct {
	own, merged prometheus.Gatherer
	open        bool // the page is OpenMetrics
}

// Gather implements prometheus.Gatherer. Of names that cabrank has itself, such as
// process_cpu_seconds_total, a worker's metric is shown with the label worker alone,
// and under cabrank's help. Names that begin with cabrank_ are cabrank's.
func (j joined) Gather() ([]*dto.MetricFamily, error) {
	all, err := j.own.Gather()
	if j.merged == nil {
		return all, err
	}
	more, _ := j.merged.Gather() // it does not fail
	own := len(all)
	for _, f := range more {
		at, known := slices.BinarySearchFunc(all[:own], f.GetName(), func(f *dto.MetricFamily, name string) int { return cmp.Compare(f.GetName(), name) })
		switch {
		case strings.HasPrefix(f.GetName(), "cabrank_"):
		case !known:
			all = append(all, j.written(f))
		case all[at].GetType() == f.GetType():
			all[at].Metric = append(all[at].Metric, slices.DeleteFunc(f.GetMetric(), withoutWorker)...)
		}
	}
	slices.SortFunc(all, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return all, err
}

// written is a family as its format can have it: OpenMetrics adds _total to counters,
// so that one without it would have another name than its worker has given it.
func (j joined) written(f *dto.MetricFamily) *dto.MetricFamily {
	if !j.open || f.GetType() != dto.MetricType_COUNTER || strings.HasSuffix(f.GetName(), "_total") {
		return f
	}
	f.Type = dto.MetricType_UNTYPED.Enum()
	for _, m := range f.GetMetric() {
		m.Untyped, m.Counter = &dto.Untyped{Value: m.GetCounter().Value}, nil
	}
	return f
}

func withoutWorker(m *dto.Metric) bool {
	return !slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == "worker" })
}
