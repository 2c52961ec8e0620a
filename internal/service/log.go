package service

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/cabrank/cabrank/internal/accesslog"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/sink"
)

// Log is the log of a process that serves. Nobody who logs waits for who
// reads: what is not taken is dropped beyond 256 KiB, or one line that is longer, and
// counted in the log.
//
// Life: OpenLog, then Close, which gives the last lines a second.
type Log struct {
	*slog.Logger

	format string         // text or json
	level  *slog.LevelVar // from which it has lines; it may change
	sink   *sink.Sink
	lines  *sink.Source
}

// OpenLog begins a log in the form and from the level of the settings.
func OpenLog(settings config.Log, out io.Writer) *Log {
	l := &Log{format: logFormat(settings, out), level: new(slog.LevelVar), sink: sink.New(out)}
	l.level.Set(settings.SlogLevel())
	l.lines = l.sink.Source(func(to []byte, lines int) []byte {
		var notice bytes.Buffer
		newLogger(l.format, slog.LevelWarn, &notice).Warn("log lines dropped: the reader is too slow", "lines", lines)
		return append(to, notice.Bytes()...)
	})
	l.Logger = newLogger(l.format, l.level, l.lines)
	l.sink.Open()
	return l
}

// Close writes what is left.
func (l *Log) Close() { l.sink.Close() }

// Fail writes why the process ends, in the form of the log: a program that reads
// JSON gets a line of it for each line of the error. It returns the error for its
// exit status.
func (l *Log) Fail(err error) error {
	switch {
	case err == nil:
		return nil
	case l.format == "text":
		cli.PrintError(l.lines, "cabrank", err)
	default:
		for line := range strings.Lines(err.Error()) {
			l.Error("failed", "error", strings.TrimRight(line, "\r\n"))
		}
	}
	return cli.Told(cli.Status(err), err)
}

// newLogger returns a logger that writes text or json to out, from a level on
// that may change. Its JSON lines have the keys time, level and msg, as
// gruf-relay's had, and say 1.5s where slog would count nanoseconds.
func newLogger(format string, level slog.Leveler, out io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: spellDuration}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}

// spellDuration writes a duration as the text handler does: with its unit.
func spellDuration(_ []string, attribute slog.Attr) slog.Attr {
	if attribute.Value.Kind() == slog.KindDuration {
		attribute.Value = slog.StringValue(attribute.Value.Duration().String())
	}
	return attribute
}

// logFormat returns text or json: auto is text for people, who look at a
// terminal, and json for programs.
func logFormat(settings config.Log, out io.Writer) string {
	if settings.Format != "auto" {
		return settings.Format
	}
	if file, isFile := out.(*os.File); isFile && term.IsTerminal(int(file.Fd())) {
		return "text"
	}
	return "json"
}

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

// accessChoice says which calls are in it: those of a second or more always are.
func accessChoice(settings config.AccessLog) accesslog.Choice {
	return accesslog.Choice{Share: settings.Sample, Slow: time.Second}
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
