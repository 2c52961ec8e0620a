package accesslog

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cabrank/cabrank/internal/sink"
)

const (
	// lookEvery is how often a file is looked for under its name.
	lookEvery = time.Second
	// tellEvery is how often the log says that lines cannot be written.
	tellEvery = time.Minute
)

// File is a file that lines are appended to. It is opened anew when it is not the file
// of its name any more, or when Reopen asks for it: so it can be rotated by renaming.
//
// Concurrency: Write and Close are for one goroutine, Reopen may be called from anywhere.
type File struct {
	path   string
	log    *slog.Logger
	again  atomic.Bool
	file   *os.File // nil if it cannot be opened now
	lines  sink.Whole
	looked time.Time
	told   time.Time
}

// Open opens or makes a file, which its user and group may read. Errors: one line that
// names the path.
func Open(path string, log *slog.Logger) (*File, error) {
	f := &File{path: path, log: log, looked: time.Now()}
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("access log: %w", err)
	}
	return f, nil
}

func (f *File) open() (err error) {
	// To open a pipe without a reader would wait for one.
	const flags = os.O_WRONLY | os.O_APPEND | os.O_CREATE | syscall.O_NONBLOCK
	f.file, err = os.OpenFile(f.path, flags, 0o640) //nolint:gosec // log shippers are in the group
	if errors.Is(err, syscall.ENXIO) {
		return fmt.Errorf("%s is a pipe that nobody reads, or a socket", f.path)
	}
	f.lines = sink.Whole{To: f.file, Cut: err == nil && endsWithin(f.path)}
	return err
}

// endsWithin reports whether a file ends within a line, as a full disk leaves it.
func endsWithin(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	var end [1]byte
	_, err = file.ReadAt(end[:], info.Size()-1)
	return err == nil && end[0] != '\n'
}

// Reopen has the next lines go to the file that has the name then.
func (f *File) Reopen() { f.again.Store(true) }

// Write appends lines. An error, which the log tells of once a minute, loses those
// behind the first n bytes, which are whole lines.
func (f *File) Write(lines []byte) (n int, err error) {
	if f.again.Swap(false) || time.Since(f.looked) >= lookEvery && f.moved() || f.file == nil {
		f.close()
		err = f.open()
	}
	if err == nil {
		n, err = f.lines.Write(lines)
	}
	if err != nil && time.Since(f.told) >= tellEvery {
		f.told = time.Now()
		f.log.Warn("lines of the access log are lost", "error", err)
	}
	return n, err
}

// moved reports whether the name is that of another file, or of none.
func (f *File) moved() bool {
	f.looked = time.Now()
	if f.file == nil {
		return true
	}
	mine, err := f.file.Stat()
	if err != nil {
		return true
	}
	named, err := os.Stat(f.path)
	return err != nil || !os.SameFile(mine, named)
}

func (f *File) close() {
	if f.file != nil {
		_ = f.file.Close() // what was written is with the kernel
		f.file = nil
	}
}

// Close closes the file.
func (f *File) Close() { f.close() }
