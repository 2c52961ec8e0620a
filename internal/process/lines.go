package process

import (
	"bytes"
	"io"
	"os"
	"time"
)

// maxLine is the length at which a line is split. Longer ones are stack dumps or binary
// data; log collectors cut at such lengths themselves.
const maxLine = 64 << 10

// Pipe makes a pipe for what a child writes: our end, for Lines, and the child's.
func Pipe() (ours, theirs *os.File, err error) {
	ours, theirs, err = os.Pipe()
	return ours, theirs, explainLimit(err)
}

// splitter cuts a stream into lines.
type splitter struct {
	partial []byte // the beginning of a line, less than maxLine
	line    func([]byte)
}

// write takes the next part of the stream.
func (s *splitter) write(part []byte) {
	for len(part) > 0 {
		end := bytes.IndexByte(part, '\n')
		whole := end >= 0
		if !whole {
			end = len(part)
		}
		if room := maxLine - len(s.partial); end > room {
			s.partial = append(s.partial, part[:room]...)
			part = part[room:]
			s.emit()
			continue
		}
		s.partial = append(s.partial, part[:end]...)
		if !whole {
			return
		}
		part = part[end+1:]
		s.partial = bytes.TrimSuffix(s.partial, []byte{'\r'})
		s.emit()
	}
}

// flush ends a line that has no end.
func (s *splitter) flush() {
	if len(s.partial) > 0 {
		s.emit()
	}
}

func (s *splitter) emit() {
	s.line(s.partial)
	s.partial = s.partial[:0]
}

// deadlineReader is the part of *os.File that Lines needs.
type deadlineReader interface {
	io.ReadCloser
	SetReadDeadline(time.Time) error
}

// Lines reads one pipe to its end, or until its deadline, closes it, and passes its lines
// on, each without its end and valid until line returns. It never waits for anything but
// the pipe.
func Lines(pipe deadlineReader, line func([]byte)) {
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
	// Reading is over; a process that still has the other end open gets SIGPIPE.
	_ = pipe.Close()
}
