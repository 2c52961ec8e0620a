package scrape

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// Gather implements prometheus.Gatherer: what all processes have shown, in the order of
// names and labels. It fails never.
func (s *Store) Gather() ([]*dto.MetricFamily, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*dto.MetricFamily, 0, len(s.families))
	for _, name := range slices.Sorted(maps.Keys(s.families)) {
		if s.isPart(name) {
			continue
		}
		if f := s.families[name].gather(); len(f.GetMetric()) > 0 {
			all = append(all, f)
		}
	}
	return all, nil
}

// isPart reports whether a name is that of a part of a histogram or summary: one that
// another process shows by itself cannot stand on the same page.
func (s *Store) isPart(name string) bool {
	for _, suffix := range suffixes() {
		base, found := strings.CutSuffix(name, suffix.text)
		if found && (suffix.of == histogram || suffix.of == summary) && s.families[base] != nil && s.families[base].kind == suffix.of {
			return true
		}
	}
	return false
}

func (f *family) gather() *dto.MetricFamily {
	out := &dto.MetricFamily{Name: new(f.name), Type: f.kind.dto().Enum()}
	if f.help != "" {
		out.Help = new(f.help)
	}
	cells := slices.SortedFunc(maps.Values(f.cells), func(a, b *cell) int { return cmp.Compare(a.key, b.key) })
	for _, c := range cells {
		if m := c.gather(); m != nil {
			m.Label = pairs(c.labels)
			out.Metric = append(out.Metric, m)
		}
	}
	return out
}

func (k kind) dto() dto.MetricType {
	switch k {
	case counter:
		return dto.MetricType_COUNTER
	case gauge, info:
		return dto.MetricType_GAUGE
	case summary:
		return dto.MetricType_SUMMARY
	case histogram:
		return dto.MetricType_HISTOGRAM
	case untyped:
	}
	return dto.MetricType_UNTYPED
}

func pairs(labels []label) []*dto.LabelPair {
	all := make([]*dto.LabelPair, len(labels))
	for i := range labels {
		all[i] = &dto.LabelPair{Name: &labels[i].name, Value: &labels[i].value}
	}
	return all
}

// gather returns the metric of a cell, nil if nobody shows it now.
func (c *cell) gather() *dto.Metric {
	switch c.family.kind {
	case counter:
		return c.gatherCounter()
	case histogram:
		return c.gatherHistogram()
	case summary:
		return c.gatherSummary()
	case gauge, untyped, info:
	}
	now, ok := c.number()
	switch {
	case !ok:
		return nil
	case c.family.kind == untyped:
		return &dto.Metric{Untyped: &dto.Untyped{Value: &now}}
	}
	return &dto.Metric{Gauge: &dto.Gauge{Value: &now}}
}

func (c *cell) gatherCounter() *dto.Metric {
	if c.policy == Last {
		now, ok := c.number()
		if !ok {
			return nil
		}
		return &dto.Metric{Counter: &dto.Counter{Value: &now}}
	}
	sum := c.past
	var latest *value
	var order uint64
	for _, i := range c.items {
		sum += i.value.total()
		if i.value.hasExemplar() && i.process.order >= order {
			latest, order = i.value, i.process.order
		}
	}
	return &dto.Metric{Counter: &dto.Counter{Value: &sum, Exemplar: latest.exemplarOf()}}
}

// number returns what is shown of gauges and the like; false if nobody shows them.
func (c *cell) number() (now float64, ok bool) {
	var order uint64
	n := 0.0
	for _, i := range c.items {
		v := i.value.total()
		if !i.shown() || ok && math.IsNaN(v) {
			continue
		}
		if !ok || math.IsNaN(now) {
			now, n, ok, order = v, 1, true, i.process.order
			continue
		}
		n++
		switch c.policy {
		case Sum, Avg:
			now += v
		case Max:
			now = max(now, v)
		case Min:
			now = min(now, v)
		case Last, Each:
			if i.process.order > order {
				now, order = v, i.process.order
			}
		}
	}
	if c.policy == Avg && n > 0 {
		now /= n
	}
	return now, ok
}

func (c *cell) gatherHistogram() *dto.Metric {
	var sum *buckets
	alike := true
	for _, i := range c.items {
		var same bool
		sum, same = sum.add(i.buckets())
		alike = alike && same
	}
	if sum = sum.addGone(c.gone); sum == nil {
		return nil
	}
	if !alike && !c.unlike {
		c.family.store.conflicts.Bounds++
	}
	c.unlike = !alike
	return &dto.Metric{Histogram: c.histogram(sum)}
}

func (c *cell) histogram(b *buckets) *dto.Histogram {
	out := &dto.Histogram{SampleCount: new(whole(b.count)), SampleSum: &b.sum}
	for n := range b.bounds {
		out.Bucket = append(out.Bucket, &dto.Bucket{
			UpperBound: &b.bounds[n], CumulativeCount: new(whole(b.counts[n])), Exemplar: c.exampleOf(b.bounds[n]),
		})
	}
	if e := c.exampleOf(math.Inf(1)); e != nil {
		out.Bucket = append(out.Bucket, &dto.Bucket{
			UpperBound: new(math.Inf(1)), CumulativeCount: new(whole(b.count)), Exemplar: e,
		})
	}
	b.native.show(out, b.count)
	return out
}

// exampleOf returns the exemplar of a bucket, of the process that was asked last.
func (c *cell) exampleOf(bound float64) *dto.Exemplar {
	var latest *value
	var order uint64
	for _, i := range c.items {
		for _, v := range i.bounds {
			if v.bound == bound && v.hasExemplar() && i.process.order >= order {
				latest, order = v, i.process.order
			}
		}
	}
	return latest.exemplarOf()
}

// whole is a count as the wire has it.
func whole(n float64) uint64 {
	if !(n > 0) {
		return 0
	}
	return uint64(min(n, 1<<63))
}

func (c *cell) gatherSummary() *dto.Metric {
	var of *item
	for _, i := range c.items {
		if i.shown() && (of == nil || i.process.order > of.process.order) {
			of = i
		}
	}
	if of == nil {
		return nil
	}
	out := &dto.Summary{}
	if of.count != nil {
		out.SampleCount = new(whole(of.count.now))
	}
	if of.sum != nil {
		out.SampleSum = new(of.sum.now)
	}
	for _, v := range of.bounds {
		out.Quantile = append(out.Quantile, &dto.Quantile{Quantile: new(v.bound), Value: new(v.now)})
	}
	return &dto.Metric{Summary: out}
}
