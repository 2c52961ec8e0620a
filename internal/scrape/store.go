package scrape

import (
	"bytes"
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
	series    int   // cells of all families
	held      int64 // bytes of all that is held
	memory    int64 // bytes that pages may take, see held.go
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
	Bytes      uint64 // more than may be held: left out
	Labels     uint64 // a series whose labels are none: left out
}

// NewStore returns a store without a process.
func NewStore(options Options) *Store {
	options.Rules = append(slices.Clip(options.Rules), usualRules()...)
	return &Store{options: options, seed: maphash.MakeSeed(), families: map[string]*family{}, memory: mostMemory}
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
	again   bool            // something of what it shows is to be placed anew
	check   bool            // on this page that may be so
	gone    bool            // it has left
	bounds  int             // of all items
	natives int             // buckets of native histograms on this page
	metrics int             // on this page, in protobuf
	held    int64           // bytes of its own, of Store.held
	made    int64           // bytes of families and cells that it was the first to show
	leftOut LeftOutError    // of this page
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

func (p *Process) clear() {
	p.items, p.bounds = nil, 0
	p.series, p.unlike = map[string]point{}, map[string]bool{}
	p.hold(-int(p.held))
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
// Errors: *PageError; what stands in front of the line counts. LeftOutError.
func (p *Process) ReadText(text []byte) error { return p.readText(text, true) }

func (p *Process) readText(text []byte, whole bool) error {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	p.leftOut = 0
	if !p.begin(p.readMetas(text)) {
		return nil
	}
	lines := reader{left: text}
	err := p.readLines(&lines)
	p.commit(err != nil || !whole)
	if err != nil {
		return &PageError{lines.line, err}
	}
	return p.anyLeftOut()
}

func (p *Process) anyLeftOut() error {
	if p.leftOut > 0 {
		return p.leftOut
	}
	return nil
}

// begin prepares for a page. It is false for a process that has left. The caller
// holds mu.
func (p *Process) begin(m metas) bool {
	if p.gone {
		return false
	}
	p.check = m.hash != p.metas.hash || p.again // what a series is may be something else now
	p.again = false
	p.metas = m
	p.pages++
	p.silent, p.natives, p.metrics = false, 0, 0
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
	if known && p.check && !p.isStill(at, p.metas.roleOf(string(s.name))) {
		p.unknow(string(s.series), at)
		known = false
	}
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
	if !p.admits(len(s.series)) {
		return at
	}
	role := p.metas.roleOf(string(s.name))
	if !p.hasRoomFor(len(s.series), role.help) {
		p.overfull()
		return at
	}
	labels, err := parseLabels(s.labels)
	if err != nil {
		p.store.conflicts.Labels++
	} else {
		at = p.place(role, labels)
	}
	p.know(string(s.series), at)
	return at
}

// admits reports whether a process may have one more series, by their number and length.
func (p *Process) admits(length int) bool {
	if length <= mostSeriesBytes && len(p.series) < mostPageSeries {
		return true
	}
	p.store.conflicts.Series++
	p.leftOut++
	return false
}

// overfull counts what has no room.
func (p *Process) overfull() {
	p.store.conflicts.Bytes++
	p.leftOut++
}

func (p *Process) know(series string, at point) {
	p.series[series] = at
	p.hold(seriesSize + len(series))
}

// unknow is the opposite. What was counted as something else goes on from now on as what
// it is now.
func (p *Process) unknow(series string, at point) {
	delete(p.series, series)
	p.hold(-seriesSize - len(series))
	if at.item != nil && at.item.cell != nil {
		at.item.forget()
	}
}

// isStill reports whether a series stays where it is. A page that leaves a type out says
// nothing of it.
func (p *Process) isStill(at point, r role) bool {
	if at.item == nil || at.item.cell == nil || at.item.cell.family.dropped {
		return false
	}
	return !r.told || at.item.cell.family.name == r.family && at.item.kind == r.kind
}

// commit ends a page. What it has not shown is gone, except for what counts. The
// caller holds mu.
func (p *Process) commit(broken bool) {
	for _, i := range p.items {
		i.commit(broken)
	}
	if full := len(p.series) >= mostPageSeries || p.leftOut > 0; full || p.check {
		p.sweep(full)
	}
	p.metas.of = nil // each page has its own
}

// sweep takes out what has no place any more, and makes room where a page had other series
// each time: then it takes out what this one had not. What counts stays: it may go on.
func (p *Process) sweep(full bool) {
	kept := p.items[:0]
	for _, i := range p.items {
		placed := i.cell != nil && !i.cell.family.dropped
		if placed && (!full || i.seen == p.pages || i.kind == counter || i.kind == histogram) {
			kept = append(kept, i)
			continue
		}
		if i.cell != nil {
			i.leave()
		}
		p.bounds -= len(i.bounds)
		i.hold(-i.held)
	}
	clear(p.items[len(kept):])
	p.items = kept
	for series, at := range p.series {
		if at.item == nil && full || at.item != nil && at.item.cell == nil {
			delete(p.series, series)
			p.hold(-seriesSize - len(series))
		}
	}
}

// Stats is what a store has now.
type Stats struct {
	Series    int
	Held      int64 // bytes
	Memory    int64 // what they may be, and pages that are read and shown beside them
	Conflicts Conflicts
}

// Stats may be called from anywhere.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{Series: s.series, Held: s.held, Memory: s.memory, Conflicts: s.conflicts}
}

// Read takes a page of whatever content type; one that is not known is taken for text.
func (p *Process) Read(page []byte, kind string) error { return p.read(page, kind, true) }

// read takes a page, or as much of one as was read before it was too long.
func (p *Process) read(page []byte, kind string, whole bool) error {
	switch {
	case kind == "application/vnd.google.protobuf":
		return p.ReadProtobuf(page)
	case !whole:
		page = page[:bytes.LastIndexByte(page, '\n')+1]
	}
	return p.readText(page, whole)
}
