package scrape

import (
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
)

// Bounds of what is kept. A page or series above them is refused, and counted.
const (
	// mostPageSeries is how many series one process may have, and buckets in protobuf.
	mostPageSeries = 20_000
	// mostSeries is how many there may be behind the merge.
	mostSeries = 100_000
	// mostSeriesBytes bounds a series with its labels.
	mostSeriesBytes = 8 << 10
)

// Options of a Store.
type Options struct {
	// Rules say what becomes of gauges. Behind them come those of the package.
	Rules []Rule
	// PerWorker shows everything for each worker, with a label that names it.
	PerWorker bool
}

// Store has what all processes have shown.
//
// Concurrency: every method may be called from anywhere. None waits for a process.
type Store struct {
	options Options
	seed    maphash.Seed

	mu        sync.Mutex
	families  map[string]*family
	series    int // cells of all families
	conflicts Conflicts
	clock     uint64 // pages that were read
}

// Conflicts counts what could not be added up as it was shown.
type Conflicts struct {
	Type       uint64 // a family has another type at another process
	Help       uint64 // or another help
	Bounds     uint64 // a histogram has other bounds: those that are shared are shown
	Duplicates uint64 // a page has a series twice: the first one counts
	Series     uint64 // too many series, or a series that is too long: left out
	Labels     uint64 // a series whose labels are none: left out
}

// NewStore returns a store without a process.
func NewStore(options Options) *Store {
	options.Rules = append(slices.Clip(options.Rules), usualRules()...)
	return &Store{options: options, seed: maphash.MakeSeed(), families: map[string]*family{}}
}

// Process is one process of a worker, from its start to its end.
//
// Guarded by Store.mu.
type Process struct {
	store  *Store
	worker string // "worker-1": several processes may have been it

	metas   metas
	series  map[string]point // by the series as it is written
	items   []*item
	pages   uint64          // that were read
	order   uint64          // of its last page among those of all
	silent  bool            // its gauges are not shown
	again   bool            // what it shows is to be placed anew
	gone    bool            // it has left
	bounds  int             // of all items
	natives int             // buckets of native histograms on this page
	unlike  map[string]bool // families for which a conflict was counted
}

// point is where the value of a series goes; nowhere if it has no item.
type point struct {
	item  *item
	value *value
}

// Join adds a process of a worker, which has shown nothing yet.
func (s *Store) Join(worker string) *Process {
	return &Process{store: s, worker: worker, series: map[string]point{}, unlike: map[string]bool{}}
}

// Leave ends a process. What it has counted stays.
func (p *Process) Leave() {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	p.gone = true
	for _, i := range p.items {
		i.leave()
	}
	p.clear()
}

// forget takes out what the process shows, which goes on counting. The caller holds mu.
func (p *Process) forget() {
	for _, i := range p.items {
		i.forget()
	}
	p.clear()
}

func (p *Process) clear() {
	p.items, p.bounds = nil, 0
	clear(p.series)
}

// Silence has no gauge of the process shown until its next page.
func (p *Process) Silence() {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	p.silent = true
}

// PageError is a page that could not be read to its end.
type PageError struct {
	Line int // from 1 on; 0: it has none
	Err  error
}

// Error implements error: the line, and what is wrong with it.
func (e *PageError) Error() string {
	if e.Line == 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("line %d: %v", e.Line, e.Err)
}

// Unwrap returns what is wrong without the line.
func (e *PageError) Unwrap() error { return e.Err }

// ReadText takes a page in the text format, or in OpenMetrics. Nothing of text is kept.
//
// Errors: *PageError; what stands in front of the line counts.
func (p *Process) ReadText(text []byte) error {
	metas := readMetas(text, p.store.seed)
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	if !p.begin(metas) {
		return nil
	}
	lines := reader{left: text}
	err := p.readLines(&lines)
	p.commit(err != nil)
	if err != nil {
		return &PageError{lines.line, err}
	}
	return nil
}

// begin prepares for a page. It is false for a process that has left. The caller
// holds mu.
func (p *Process) begin(m metas) bool {
	if p.gone {
		return false
	}
	if m.hash != p.metas.hash || p.again {
		p.forget() // what a series is may be something else now
		p.again = false
	}
	p.metas = m
	p.pages++
	p.silent, p.natives = false, 0
	p.store.clock++
	p.order = p.store.clock
	return true
}

func (p *Process) readLines(lines *reader) error {
	for {
		line, ok := lines.next()
		if !ok {
			return nil
		}
		if line[0] == '#' {
			if r, ok := parseRemark(line); ok && r.word[0] == 'E' {
				return nil
			}
			continue
		}
		s, err := parseSample(line)
		if err != nil {
			return err
		}
		p.take(&s)
	}
}

// take takes one sample. The caller holds mu.
func (p *Process) take(s *sample) {
	at, known := p.series[string(s.series)]
	if !known {
		at = p.find(s)
	}
	if at.item == nil {
		return
	}
	if !at.item.set(at.value, s.value, s.exemplar) {
		p.store.conflicts.Duplicates++
	}
}

// find makes the place of a series that was not seen before.
func (p *Process) find(s *sample) (at point) {
	c := &p.store.conflicts
	if len(s.series) > mostSeriesBytes || len(p.series) >= mostPageSeries {
		c.Series++
		return at
	}
	labels, err := parseLabels(s.labels)
	if err != nil {
		c.Labels++
	} else {
		at = p.place(p.metas.roleOf(string(s.name)), labels)
	}
	p.series[string(s.series)] = at
	return at
}

// commit ends a page. What it has not shown is gone, except for what counts. The
// caller holds mu.
func (p *Process) commit(broken bool) {
	for _, i := range p.items {
		i.commit(broken)
	}
	if len(p.series) >= mostPageSeries {
		p.forgetUnseen()
	}
}

// forgetUnseen makes room where a page had other series each time. What counts stays:
// it may go on.
func (p *Process) forgetUnseen() {
	kept := p.items[:0]
	for _, i := range p.items {
		if i.seen == p.pages || i.kind == counter || i.kind == histogram {
			kept = append(kept, i)
		} else {
			i.leave()
		}
	}
	clear(p.items[len(kept):])
	p.items = kept
	for series, at := range p.series {
		if at.item == nil || at.item.cell == nil {
			delete(p.series, series)
		}
	}
}

// Stats is what a store has now.
type Stats struct {
	Series    int
	Conflicts Conflicts
}

// Stats may be called from anywhere.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{Series: s.series, Conflicts: s.conflicts}
}

// Read takes a page of whatever content type; one that is not known is taken for text.
func (p *Process) Read(page []byte, kind string) error {
	if kind == "application/vnd.google.protobuf" {
		return p.ReadProtobuf(page)
	}
	return p.ReadText(page)
}
