package scrape

import "fmt"

// Bounds of the memory that pages take, as they are held: texts are kept more than once,
// and a page in protobuf is many times as long when it is read.
const (
	// mostMemory is what all pages take, of all workers, where the machine has it.
	mostMemory = 128 << 20
	// leastMemory is for them however little the container has.
	leastMemory = 2 << 20
	// heldShare of it is held between two pages; the rest is for pages that are read or
	// shown.
	heldShare = 2
	// processShare of it is what one process may hold, and how long its page may be.
	processShare = 8

	// mostExampleBytes bounds an exemplar. OpenMetrics allows 128 letters of labels.
	mostExampleBytes = 512
)

// What things take beside their texts, bytes, with their places in slices and maps.
const (
	seriesSize  = 80
	itemSize    = 144
	valueSize   = 96
	nativeSize  = 32  // a bucket
	exampleSize = 160 // in protobuf, and its bytes
	labelSize   = 64
	cellSize    = 192
	boundSize   = 16 // of a histogram of processes that have gone
	familySize  = 448
	metaSize    = 96
	unlikeSize  = 64 // a name in Process.unlike
)

// SetMemory bounds what the pages of workers may take in all, bytes, and returns the
// bound: no more than is ever needed, and never next to nothing. What is held already
// stays.
func (s *Store) SetMemory(bytes int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory = min(max(bytes, leastMemory), mostMemory)
	return s.memory
}

// pageBytes is how long a page may be, unpacked.
func (s *Store) pageBytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.memory / processShare)
}

// hasRoom reports whether a process may hold so much more. The caller holds mu.
func (p *Process) hasRoom(bytes int) bool {
	s := p.store
	return p.held+p.made+int64(bytes) <= s.memory/processShare && s.held+int64(bytes) <= s.memory/heldShare
}

// hasRoomFor reports whether a series that is not known yet has room with all that may
// come with it. A label takes more than its text if it is short.
func (p *Process) hasRoomFor(series int, help string) bool {
	return p.hasRoom(seriesSize + itemSize + 2*valueSize + cellSize + familySize + len(help) + 12*series)
}

// hold notes what a process holds more, or less. The caller holds mu.
func (p *Process) hold(bytes int) {
	p.held += int64(bytes)
	p.store.held += int64(bytes)
}

func (i *item) hold(bytes int) {
	i.held += bytes
	i.process.hold(bytes)
}

// size is what a cell holds without its items.
func (c *cell) size() int {
	all := cellSize + len(c.key)
	for _, l := range c.labels {
		all += labelSize + len(l.name) + len(l.value)
	}
	if c.gone != nil {
		all += 2*boundSize*len(c.gone.bounds) + c.gone.native.size()
	}
	return all
}

// weigh notes what a cell holds now.
func (c *cell) weigh() { c.maker.make(&c.held, c.size()) }

// weigh notes what a family holds now without its cells.
func (f *family) weigh() { f.maker.make(&f.held, familySize+len(f.name)+len(f.help)) }

// make notes what something holds now that a process has made for all.
func (p *Process) make(held *int, now int) {
	p.made += int64(now - *held)
	p.store.held += int64(now - *held)
	*held = now
}

func (n *native) size() int {
	if n == nil {
		return 0
	}
	return nativeSize * (2 + len(n.above) + len(n.below))
}

// LeftOutError tells how much of a page was left out, because a bound was reached.
type LeftOutError int

// Error implements error.
func (e LeftOutError) Error() string {
	return fmt.Sprintf("%d of its series or descriptions are left out: there are too many, or they take too much memory", int(e))
}
