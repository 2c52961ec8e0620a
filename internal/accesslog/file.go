package accesslog

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
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
	lost   atomic.Uint64 // lines
	file   *os.File      // nil if it cannot be opened now
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
	f.file, err = os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640) //nolint:gosec // log shippers are in the group
	return err
}

// Reopen has the next lines go to the file that has the name then.
func (f *File) Reopen() { f.again.Store(true) }

// Write appends lines. An error, which the log tells of once a minute, loses them.
func (f *File) Write(lines []byte) (n int, err error) {
	if f.again.Swap(false) || time.Since(f.looked) >= lookEvery && f.moved() || f.file == nil {
		f.close()
		err = f.open()
	}
	if err == nil {
		n, err = f.file.Write(lines)
	}
	if err != nil {
		f.lost.Add(uint64(bytes.Count(lines[n:], []byte("\n"))))
	}
	if err != nil && time.Since(f.told) >= tellEvery {
		f.told = time.Now()
		f.log.Warn("lines of the access log are lost", "error", err)
	}
	return n, err
}

// Lost returns how many lines could not be written. It may be called from anywhere.
func (f *File) Lost() uint64 { return f.lost.Load() }

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
