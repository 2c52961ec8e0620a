package main

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"

	"github.com/cabrank/cabrank/internal/config"
)

// newLogger returns the logger of a process that writes to out, from a level on
// that may change. Its JSON lines
// have the keys time, level and msg, as gruf-relay's had, and say 1.5s where
// slog would count nanoseconds.
func newLogger(settings config.Log, level slog.Leveler, out io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: spellDuration}
	if logFormat(settings, out) == "json" {
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
