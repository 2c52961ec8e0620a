package scrape

import (
	"bytes"
	"hash/maphash"
	"strings"
)

// kind is what a family is made of.
type kind uint8

const (
	untyped kind = iota
	counter
	gauge
	summary
	histogram
	info // a gauge that tells of one process
)

// kindNamed knows the types of both text formats. What adds up in no way known here
// (stateset, gaugehistogram) is untyped.
func kindNamed(word []byte) kind {
	switch string(word) {
	case "counter":
		return counter
	case "gauge":
		return gauge
	case "summary":
		return summary
	case "histogram":
		return histogram
	case "info":
		return info
	}
	return untyped
}

// meta is what a page says of a family.
type meta struct {
	kind kind
	told bool // that it is of this kind
	help string
}

// metas is what a page says of its families, by name.
type metas struct {
	of   map[string]meta
	hash uint64 // of all types in any order: what a series is may change only with it

	room    int64 // bytes that more of it may take
	skipped int   // remarks that had none
}

// admits reports whether a remark has room, and takes it.
func (m *metas) admits(r remark) bool {
	size := int64(metaSize + len(r.name) + len(r.text))
	if size > m.room || len(r.name)+len(r.text) > mostSeriesBytes {
		m.skipped++
		return false
	}
	m.room -= size
	return true
}

// skipped counts remarks that were left out. The caller holds mu.
func (p *Process) skipped(remarks int) {
	p.store.conflicts.Bytes += uint64(remarks)
	p.leftOut += LeftOutError(remarks)
}

// readMetas reads the remarks of a text page, wherever they stand. The caller holds mu.
func (p *Process) readMetas(text []byte) metas {
	m := metas{of: map[string]meta{}, room: p.store.memory / processShare}
	defer func() { p.skipped(m.skipped) }()
	for lines := (reader{left: text}); len(lines.left) > 0; {
		lines.skipSamples()
		line, ok := lines.next()
		if !ok {
			break
		}
		if line[0] != '#' {
			continue
		}
		r, ok := parseRemark(line)
		if !ok || !m.admits(r) {
			continue
		}
		known := m.of[string(r.name)]
		switch r.word[0] {
		case 'T':
			known.kind, known.told = kindNamed(r.text), true
			m.hash += maphash.Bytes(p.store.seed, line)
		case 'H':
			known.help = unescaped(r.text, false)
		default:
			continue
		}
		m.of[string(r.name)] = known
	}
	return m
}

// skipSamples goes to the next line that may be a remark.
func (p *reader) skipSamples() {
	for len(p.left) > 0 && p.left[0] != '#' && !isBlank(p.left[0]) {
		end := bytes.IndexByte(p.left, '\n')
		if end < 0 {
			p.left = nil
			return
		}
		p.left = p.left[end+1:]
	}
}

// part is which value of a metric a sample has.
type part uint8

const (
	partValue part = iota
	partSum
	partCount
	partBucket   // of a histogram, with the label le
	partQuantile // of a summary, with the label quantile
	partNone     // not shown: the time of creation
)

// role is what a sample is: which family it belongs to, and which part of it has.
type role struct {
	family string
	kind   kind
	part   part
	told   bool // by the page
	help   string
}

// roleOf says what the sample of a name is. OpenMetrics has the family's name without
// its suffix; here counters have the name that their samples have.
func (m *metas) roleOf(name string) role {
	if known, ok := m.of[name]; ok {
		r := role{family: name, kind: known.kind, told: known.told, help: known.help}
		switch known.kind { //nolint:exhaustive // the others are one value
		case summary:
			r.part = partQuantile
		case histogram:
			r.kind = untyped // a histogram has no sample of this name
		}
		return r
	}
	for _, s := range suffixes() {
		base, found := strings.CutSuffix(name, s.text)
		if !found {
			continue
		}
		if known, ok := m.of[base]; ok && (known.kind == s.of) {
			r := role{family: base, kind: s.of, part: s.part, told: true, help: known.help}
			if s.of == counter || s.of == info {
				r.family = name
			}
			return r
		}
	}
	return role{family: name, kind: untyped}
}

// suffix is one that samples have behind their family's name.
type suffix struct {
	text string
	of   kind
	part part
}

func suffixes() [10]suffix {
	return [10]suffix{
		{"_total", counter, partValue}, {"_info", info, partValue},
		{"_bucket", histogram, partBucket}, {"_sum", histogram, partSum}, {"_count", histogram, partCount},
		{"_sum", summary, partSum}, {"_count", summary, partCount},
		{"_created", counter, partNone}, {"_created", histogram, partNone}, {"_created", summary, partNone},
	}
}
