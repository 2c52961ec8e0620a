package testbed

import "os"

// mostLog bounds what one process leaves in a file.
const mostLog = 1 << 20

// log is a file that takes so much and then no more.
//
// Concurrency: one goroutine writes.
type log struct {
	file *os.File
	left int
}

func openLog(name string) (*log, error) {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	return &log{file, mostLog}, nil
}

// Write never fails: a process does not end for a disk that is full.
func (l *log) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	_, _ = l.file.Write(p[:n])
	return len(p), nil
}

func (l *log) close() {
	if l != nil {
		_ = l.file.Close()
	}
}
