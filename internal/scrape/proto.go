package scrape

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"
)

// ReadProtobuf takes a page of delimited io.prometheus.client.MetricFamily messages,
// the one format that has native histograms.
//
// Errors: *PageError without a line; what stands in front of the fault counts.
func (p *Process) ReadProtobuf(page []byte) error {
	families, err := parseFamilies(page)
	metas := metas{of: map[string]meta{}}
	for _, f := range families {
		metas.of[f.GetName()] = meta{kind: kindOf(f.GetType()), help: strings.ToValidUTF8(f.GetHelp(), "\uFFFD")}
		metas.hash += maphash.String(p.store.seed, f.GetType().String()+f.GetName())
	}
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	if !p.begin(metas) {
		return nil
	}
	for _, f := range families {
		p.takeFamily(f)
	}
	p.commit(false) // a metric is whole or not there
	if err != nil {
		return &PageError{0, err}
	}
	return nil
}

// parseFamilies returns the families in front of a fault, and the fault.
func parseFamilies(page []byte) (families []*dto.MetricFamily, err error) {
	from := bytes.NewReader(page)
	for {
		f := new(dto.MetricFamily)
		switch err := (protodelim.UnmarshalOptions{MaxSize: mostPageBytes, UnmarshalOptions: proto.UnmarshalOptions{AllowPartial: true}}).UnmarshalFrom(from, f); {
		case errors.Is(err, io.EOF) && from.Len() == 0:
			return families, nil
		case err != nil:
			return families, err
		case f.GetName() == "" || nameEnd([]byte(f.GetName())) != len(f.GetName()):
			return families, fmt.Errorf("%.60q is no name of a metric", f.GetName())
		}
		families = append(families, f)
	}
}

func kindOf(t dto.MetricType) kind {
	switch t {
	case dto.MetricType_COUNTER:
		return counter
	case dto.MetricType_GAUGE:
		return gauge
	case dto.MetricType_SUMMARY:
		return summary
	case dto.MetricType_HISTOGRAM:
		return histogram
	case dto.MetricType_UNTYPED, dto.MetricType_GAUGE_HISTOGRAM:
	}
	return untyped
}

// takeFamily takes all metrics of a family. The caller holds mu.
func (p *Process) takeFamily(f *dto.MetricFamily) {
	known := p.metas.of[f.GetName()]
	r := role{family: f.GetName(), kind: known.kind, help: known.help}
	for _, m := range f.GetMetric() {
		i := p.metricOf(r, m)
		if i == nil {
			continue
		}
		if i.seen == p.pages {
			p.store.conflicts.Duplicates++
			continue
		}
		i.takeMetric(m)
	}
}

// metricOf returns where a metric goes, nil if nowhere.
func (p *Process) metricOf(r role, m *dto.Metric) *item {
	id := metricKey(r.family, m.GetLabel())
	if at, ok := p.series[id]; ok {
		return at.item
	}
	if len(id) > mostSeriesBytes || len(p.series) >= mostPageSeries {
		p.store.conflicts.Series++
		return nil
	}
	labels, err := labelsOf(m.GetLabel())
	if err != nil {
		p.store.conflicts.Labels++
		p.series[id] = point{}
		return nil
	}
	at := p.place(r, labels)
	p.series[id] = at
	return at.item
}

func metricKey(name string, pairs []*dto.LabelPair) string {
	var b strings.Builder
	b.WriteString(name)
	for _, l := range pairs {
		b.WriteByte(0xff)
		b.WriteString(l.GetName())
		b.WriteByte(0xff)
		b.WriteString(l.GetValue())
	}
	return b.String()
}

func labelsOf(pairs []*dto.LabelPair) (labels []label, err error) {
	for _, l := range pairs {
		name := l.GetName()
		if name == "" || nameEnd([]byte(name)) != len(name) || strings.Contains(name, ":") {
			return nil, errLabels
		}
		if l.GetValue() != "" {
			labels = append(labels, label{name, strings.ToValidUTF8(l.GetValue(), "\uFFFD")})
		}
	}
	return sorted(labels)
}

func (i *item) takeMetric(m *dto.Metric) {
	switch {
	case i.kind == histogram:
		i.takeHistogram(m.GetHistogram())
	case i.kind == summary:
		for _, q := range m.GetSummary().GetQuantile() {
			i.put(i.bound(q.GetQuantile()), q.GetValue())
		}
		i.put(i.part(partSum), m.GetSummary().GetSampleSum())
		i.put(i.part(partCount), float64(m.GetSummary().GetSampleCount()))
	case m.GetCounter() != nil:
		i.put(i.part(partValue), m.GetCounter().GetValue())
		i.value.example = m.GetCounter().GetExemplar()
	case m.GetGauge() != nil:
		i.put(i.part(partValue), m.GetGauge().GetValue())
	default:
		i.put(i.part(partValue), m.GetUntyped().GetValue())
	}
}

func (i *item) takeHistogram(h *dto.Histogram) {
	count := float64(h.GetSampleCount())
	if h.SampleCountFloat != nil {
		count = h.GetSampleCountFloat()
	}
	i.put(i.part(partCount), count)
	i.put(i.part(partSum), h.GetSampleSum())
	for _, b := range h.GetBucket() {
		if math.IsNaN(b.GetUpperBound()) {
			continue
		}
		n := float64(b.GetCumulativeCount())
		if b.CumulativeCountFloat != nil {
			n = b.GetCumulativeCountFloat()
		}
		if v := i.bound(b.GetUpperBound()); v != nil {
			i.put(v, n)
			v.example = b.GetExemplar()
		}
	}
	if i.process.natives += nativeBuckets(h); i.process.natives <= mostPageSeries {
		i.nextNative = nativeOf(h)
	}
}

func (i *item) put(v *value, to float64) {
	if v != nil {
		i.set(v, to, nil)
	}
}
