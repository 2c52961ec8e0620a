// Package sink writes lines to a writer that may block for as long as it
// likes, so that nobody who has something to say ever waits for who reads it.
//
// A Sink has one writer and any number of Sources. What a Source adds beyond
// its bound is dropped, counted, and told where it is missing.
package sink

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	// maxPending bounds what is kept of one source while the writer stalls. A longer
	// line is kept alone: who makes lines bounds them.
	maxPending = 256 << 10
	// closeLimit bounds the last write to a reader that stalls.
	closeLimit = time.Second
)

// Sink is where the lines of all sources meet. One goroutine writes.
//
// Shape: New, Open once, Close. Concurrency: all methods may be called from
// anywhere, and so may those of its sources.
type Sink struct {
	writer io.Writer
	wake   chan struct{} // capacity 1
	stop   chan struct{}
	done   chan struct{} // closed when run has written all it had; nil before Open

	mu      sync.Mutex
	pending []byte // lines, whole
	sources []*Source
	dropped uint64 // lines, ever, with those that the writer has not taken
}

// Source is one share of a sink. Its fields are guarded by Sink.mu.
//
// Once a line is dropped all are, until the writer has taken the rest and put
// the notice behind it: so the notice stands where the lines are missing.
type Source struct {
	sink    *Sink
	notice  func(to []byte, lines int) []byte
	pending int // bytes of ours in sink.pending
	writing int // bytes of ours that are being written
	dropped int // lines since the last notice
}

// New returns a sink for a writer, which gets whole lines, several in one Write.
func New(writer io.Writer) *Sink {
	return &Sink{writer: &Whole{To: writer}, wake: make(chan struct{}, 1), stop: make(chan struct{})}
}

// Source adds a source. notice appends a line that says how many are missing.
func (s *Sink) Source(notice func(to []byte, lines int) []byte) *Source {
	from := &Source{sink: s, notice: notice}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources = append(s.sources, from)
	return from
}

// Open starts to write. Stopped by Close.
func (s *Sink) Open() {
	s.done = make(chan struct{})
	go s.run()
}

func (s *Sink) run() {
	defer close(s.done)
	var batch []byte
	for stopping := false; ; {
		if batch = s.take(batch[:0]); len(batch) > 0 {
			// There is nobody to tell: a reader that is gone loses the lines.
			n, _ := s.writer.Write(batch)
			s.written(batch[n:])
			continue
		}
		if stopping {
			return
		}
		select {
		case <-s.wake:
		case <-s.stop:
			stopping = true
		}
	}
}

// take returns the pending lines and the notices behind them, and keeps spare
// as the next buffer.
func (s *Sink) take(spare []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, from := range s.sources {
		if from.dropped > 0 {
			s.pending = from.notice(s.pending, from.dropped)
			from.dropped = 0
		}
		from.writing, from.pending = from.pending, 0
	}
	batch := s.pending
	s.pending = spare
	return batch
}

// Dropped returns how many lines were dropped since New, or not taken by the writer.
func (s *Sink) Dropped() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// written is called after each Write, with the lines that it has not taken.
func (s *Sink) written(lost []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped += uint64(bytes.Count(lost, newline()))
	for _, from := range s.sources {
		from.writing = 0
	}
}

// Close writes what is pending, for at most 1 s. A Write that hangs longer is
// left behind. Before Open it does nothing.
func (s *Sink) Close() {
	if s.done == nil {
		return
	}
	close(s.stop)
	select {
	case <-s.done:
	case <-time.After(closeLimit):
	}
}

// Write adds one whole line with its end. It never blocks and never fails.
func (f *Source) Write(line []byte) (int, error) {
	s := f.sink
	s.mu.Lock()
	defer s.mu.Unlock()
	held := f.pending + f.writing
	if f.dropped > 0 || held > 0 && held+len(line) > maxPending {
		f.dropped++
		s.dropped++
		return len(line), nil
	}
	s.pending = append(s.pending, line...)
	f.pending += len(line)
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return len(line), nil
}
