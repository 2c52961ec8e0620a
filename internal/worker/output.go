package worker

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"
)

const (
	// maxLine is where a line is split. Longer ones are stack dumps or binary
	// data; log collectors cut at sizes like this themselves.
	maxLine = 64 << 10
	// maxPending bounds what is kept of one worker's output while our own reader
	// stalls.
	maxPending = 256 << 10
	// flushLimit bounds the last write of a sink to a reader that stalls.
	flushLimit = time.Second
)

// sink is where the lines of all workers meet. Adding never blocks; one
// goroutine writes, and may hang as long as the reader of Writer likes.
type sink struct {
	output Output
	wake   chan struct{} // capacity 1
	stop   chan struct{}
	done   chan struct{} // closed when run has written all it had; nil before open

	mu      sync.Mutex
	pending []byte // formatted lines, whole
	sources []*source
}

// source is one worker's share of a sink. Its fields are guarded by sink.mu.
//
// Once a line is dropped all are, until the writer has taken the rest and put
// the notice behind it: so the notice stands where the lines are missing.
type source struct {
	sink    *sink
	worker  string
	pending int // bytes of ours in sink.pending
	writing int // bytes of ours that are being written
	dropped int // lines since the last notice
}

func newSink(output Output) *sink {
	return &sink{output: output, wake: make(chan struct{}, 1), stop: make(chan struct{})}
}

// source adds a worker.
func (s *sink) source(worker string) *source {
	from := &source{sink: s, worker: worker}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources = append(s.sources, from)
	return from
}

// open starts to write. Stopped by close.
func (s *sink) open() {
	s.done = make(chan struct{})
	go s.run()
}

func (s *sink) run() {
	defer close(s.done)
	var batch []byte
	for stopping := false; ; {
		if batch = s.take(batch[:0]); len(batch) > 0 {
			// There is nobody to tell: a reader that is gone loses the lines.
			_, _ = s.output.Writer.Write(batch)
			s.written()
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
func (s *sink) take(spare []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, from := range s.sources {
		if from.dropped > 0 {
			notice := "… " + strconv.Itoa(from.dropped) + " lines dropped"
			s.pending = s.output.append(s.pending, from.worker, "", []byte(notice), time.Now())
			from.dropped = 0
		}
		from.writing, from.pending = from.pending, 0
	}
	batch := s.pending
	s.pending = spare
	return batch
}

func (s *sink) written() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, from := range s.sources {
		from.writing = 0
	}
}

// close writes what is pending, for at most 1 s. A Write that hangs longer is
// left behind.
func (s *sink) close() {
	if s.done == nil {
		return
	}
	close(s.stop)
	select {
	case <-s.done:
	case <-time.After(flushLimit):
	}
}

// line adds one line of the worker, given without its end. It never blocks.
func (f *source) line(text []byte) { f.add("", text) }

// hook returns what line is for the lines of a hook.
func (f *source) hook(name string) func([]byte) {
	return func(text []byte) { f.add(name, text) }
}

func (f *source) add(hook string, text []byte) {
	s := f.sink
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.pending)
	s.pending = s.output.append(s.pending, f.worker, hook, text, time.Now())
	size := len(s.pending) - before
	if f.dropped > 0 || f.pending+f.writing+size > maxPending {
		s.pending = s.pending[:before]
		f.dropped++
		return
	}
	f.pending += size
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// append adds one formatted line with its end. hook is empty for what the worker
// itself writes.
func (o Output) append(to []byte, worker, hook string, text []byte, now time.Time) []byte {
	switch {
	case !o.JSON:
		to = append(to, worker...)
		if hook != "" {
			to = append(append(to, ' '), hook...)
		}
		to = append(append(to, " | "...), text...)
	case isObject(text):
		to = append(to, text...)
	default:
		to = append(to, wrap(worker, hook, text, now)...)
	}
	return append(to, '\n')
}

func isObject(text []byte) bool {
	trimmed := bytes.TrimLeft(text, " \t")
	return len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(text)
}

func wrap(worker, hook string, text []byte, now time.Time) []byte {
	// Bytes that are not UTF-8 become U+FFFD.
	wrapped, err := json.Marshal(struct {
		Time   string `json:"time"`
		Level  string `json:"level"`
		Msg    string `json:"msg"`
		Worker string `json:"worker"`
		Hook   string `json:"hook,omitempty"`
	}{now.Format(time.RFC3339Nano), slog.LevelInfo.String(), string(text), worker, hook})
	if err != nil { // strings cannot fail
		return text
	}
	return wrapped
}

// splitter cuts a stream into lines.
type splitter struct {
	held []byte // the beginning of a line, less than maxLine
	line func([]byte)
}

// write takes the next part of the stream.
func (s *splitter) write(part []byte) {
	for len(part) > 0 {
		end := bytes.IndexByte(part, '\n')
		whole := end >= 0
		if !whole {
			end = len(part)
		}
		if room := maxLine - len(s.held); end > room {
			s.held = append(s.held, part[:room]...)
			part = part[room:]
			s.emit()
			continue
		}
		s.held = append(s.held, part[:end]...)
		if !whole {
			return
		}
		part = part[end+1:]
		s.held = bytes.TrimSuffix(s.held, []byte{'\r'})
		s.emit()
	}
}

// flush ends a line that has no end.
func (s *splitter) flush() {
	if len(s.held) > 0 {
		s.emit()
	}
}

func (s *splitter) emit() {
	s.line(s.held)
	s.held = s.held[:0]
}

// deadlineReader is the part of *os.File that a pump needs.
type deadlineReader interface {
	io.ReadCloser
	SetReadDeadline(time.Time) error
}

// pump reads one pipe to its end, or until its deadline, and passes its lines on.
// It never waits for anything but the pipe, so a worker never waits for it.
func pump(pipe deadlineReader, line func([]byte)) {
	lines := splitter{line: line}
	buffer := make([]byte, 32<<10)
	for {
		n, err := pipe.Read(buffer)
		lines.write(buffer[:n])
		if err != nil {
			break
		}
	}
	lines.flush()
	// Reading is over; a process that still holds the other end gets SIGPIPE.
	_ = pipe.Close()
}
