package scrape

import (
	"errors"
	"hash/maphash"
	"math"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// mostMetricBytes bounds a metric in protobuf, with all of its buckets. It takes up to 40
// times as much when it is read.
const mostMetricBytes = 64 << 10

// Numbers of the fields of io.prometheus.client.MetricFamily.
const (
	nameField   = 1
	helpField   = 2
	typeField   = 3
	metricField = 4
)

// ReadProtobuf takes a page of delimited io.prometheus.client.MetricFamily messages,
// the one format that has native histograms. One metric is unpacked at a time.
//
// Errors: *PageError without a line; what stands in front of the fault counts.
// LeftOutError.
func (p *Process) ReadProtobuf(page []byte) error {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	p.leftOut = 0
	families, metas, err := p.readFamilies(page)
	if !p.begin(metas) {
		return nil
	}
	if fault := p.takeFamilies(families); fault != nil {
		err = fault
	}
	p.commit(false) // a metric is whole or not there
	if err != nil {
		return &PageError{0, err}
	}
	return p.anyLeftOut()
}

// readFamilies reads what is said of families, and returns the page up to a fault.
func (p *Process) readFamilies(page []byte) (families []byte, m metas, err error) {
	m = metas{of: map[string]meta{}, room: p.store.memory / processShare}
	defer func() { p.skipped(m.skipped) }()
	rest := page
	for len(rest) > 0 && err == nil {
		var f []byte
		if f, rest, err = cutFamily(rest); err != nil {
			break
		}
		var r remark
		var t dto.MetricType
		if r, t, err = eachMetric(f, nil); err != nil {
			break
		}
		if len(r.name) == 0 {
			err = errors.New("a metric without a name")
			break
		}
		families = page[:len(page)-len(rest)]
		if m.admits(r) {
			m.of[legal(string(r.name), ':')] = meta{kind: kindOf(t), told: true, help: strings.ToValidUTF8(string(r.text), "\uFFFD")}
			m.hash += maphash.String(p.store.seed, t.String()+string(r.name))
		}
	}
	return families, m, err
}

// takeFamilies takes all metrics up to a fault.
func (p *Process) takeFamilies(families []byte) (err error) {
	for rest := families; len(rest) > 0 && err == nil; {
		var f []byte
		if f, rest, err = cutFamily(rest); err == nil {
			err = p.takeFamily(f)
		}
	}
	return err
}

// cutFamily cuts the first message off a page.
func cutFamily(page []byte) (family, rest []byte, err error) {
	family, n := protowire.ConsumeBytes(page)
	if n < 0 {
		return nil, nil, protowire.ParseError(n)
	}
	return family, page[n:], nil
}

// eachMetric reads a family, and hands over its metrics one by one, in their bytes.
func eachMetric(family []byte, take func(metric []byte) error) (r remark, t dto.MetricType, err error) {
	for len(family) > 0 {
		field, wire, n := protowire.ConsumeTag(family)
		if n < 0 {
			return r, t, protowire.ParseError(n)
		}
		m := protowire.ConsumeFieldValue(field, wire, family[n:])
		if m < 0 {
			return r, t, protowire.ParseError(m)
		}
		value := family[n : n+m]
		family = family[n+m:]
		switch {
		case field == typeField && wire == protowire.VarintType:
			number, _ := protowire.ConsumeVarint(value)
			t = dto.MetricType(int32(number))
			continue
		case wire != protowire.BytesType:
			continue
		}
		value, _ = protowire.ConsumeBytes(value)
		switch {
		case field == nameField:
			r.name = value
		case field == helpField:
			r.text = value
		case field == metricField && take != nil:
			err = take(value)
		}
		if err != nil {
			return r, t, err
		}
	}
	return r, t, nil
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

// takeFamily takes all metrics of a family up to a fault. The caller holds mu.
func (p *Process) takeFamily(family []byte) error {
	remark, _, _ := eachMetric(family, nil)
	name := legal(string(remark.name), ':')
	known, told := p.metas.of[name]
	if !told {
		return nil // it had no room
	}
	r := role{family: name, kind: known.kind, told: true, help: known.help}
	_, _, err := eachMetric(family, func(metric []byte) error {
		if p.metrics++; p.metrics > mostPageSeries || len(metric) > mostMetricBytes {
			p.store.conflicts.Series++
			p.leftOut++
			return nil
		}
		m := new(dto.Metric)
		if err := proto.Unmarshal(metric, m); err != nil {
			return err
		}
		p.takeMetric(r, m)
		return nil
	})
	return err
}

func (p *Process) takeMetric(r role, m *dto.Metric) {
	i := p.metricOf(r, m)
	switch {
	case i == nil:
	case i.seen == p.pages:
		p.store.conflicts.Duplicates++
	default:
		i.takeMetric(m)
	}
}

// metricOf returns where a metric goes, nil if nowhere.
func (p *Process) metricOf(r role, m *dto.Metric) *item {
	id := metricKey(r.family, m.GetLabel())
	if at, ok := p.series[id]; ok {
		if !p.check || p.isStill(at, r) {
			return at.item
		}
		p.unknow(id, at)
	}
	if !p.admits(len(id)) {
		return nil
	}
	if !p.hasRoomFor(len(id), r.help) {
		p.overfull()
		return nil
	}
	labels, err := labelsOf(m.GetLabel())
	if err != nil {
		p.store.conflicts.Labels++
		p.know(id, point{})
		return nil
	}
	at := p.place(r, labels)
	p.know(id, at)
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
		name := legal(l.GetName(), '_')
		if name == "" {
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
		i.exemplify(i.value, m.GetCounter().GetExemplar())
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
			i.exemplify(v, b.GetExemplar())
		}
	}
	n := nativeBuckets(h)
	if i.process.natives += n; i.process.natives > mostPageSeries || !i.process.hasRoom(nativeSize*n) {
		i.process.overfull()
		return
	}
	i.nextNative = nativeOf(h)
}

// exemplify takes the exemplar of a value, nil if it has none.
func (i *item) exemplify(v *value, e *dto.Exemplar) {
	if e == nil && v.example == nil {
		return
	}
	if i.mayExemplify(v, exampleSize+proto.Size(e)) {
		v.example = e
	}
}

func (i *item) put(v *value, to float64) {
	if v != nil {
		i.set(v, to, nil)
	}
}
