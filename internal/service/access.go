package service

import (
	"io"
	"sync"

	"github.com/cabrank/cabrank/internal/accesslog"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/sink"
)

// access is the log of finished calls.
type access struct {
	log  *accesslog.Log
	file *accesslog.File // nil if it is stdout
}

// openAccess opens it, where it is wanted. What is written to stdout comes between the
// lines of workers, never within one.
func (s *service) openAccess() error {
	settings := s.cfg.AccessLog
	if settings.Path == "none" {
		return nil
	}
	a := &access{}
	to := io.Writer(s.stdout)
	if settings.Path != "stdout" {
		file, err := accesslog.Open(settings.Path, s.log)
		if err != nil {
			return cli.UsageError(err)
		}
		a.file, to = file, file
	}
	a.log = accesslog.New(accessChoice(settings), to)
	s.access = a
	return nil
}

func accessChoice(settings config.AccessLog) accesslog.Choice {
	return accesslog.Choice{Share: settings.Sample, Slow: slowCall}
}

// reopen has the next line go to the file that has the name then.
func (a *access) reopen() {
	if a != nil && a.file != nil {
		a.file.Reopen()
	}
}

// close writes what is left.
func (a *access) close() {
	if a == nil {
		return
	}
	a.log.Close()
	if a.file != nil {
		a.file.Close()
	}
}

// sharedWriter is for several writers of whole lines.
type sharedWriter struct {
	mu sync.Mutex
	to sink.Whole
}

// Write implements io.Writer.
func (w *sharedWriter) Write(lines []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(lines)
}
