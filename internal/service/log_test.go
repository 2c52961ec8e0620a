package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/testkit"
)

// Programs that read gruf-relay's log find the same keys.
func TestJSONLog(t *testing.T) {
	var out bytes.Buffer
	log := newLogger(logFormat(config.Log{Format: "auto"}, &out), slog.LevelWarn, &out) // no terminal: json
	log.Info("below the level")
	log.Warn("seen", "worker", "worker-1")
	var line map[string]any
	err := json.Unmarshal(out.Bytes(), &line)
	testkit.Need(t, err == nil, "%v in %q", err, out.String())
	testkit.Want(t, line["level"] == "WARN" && line["msg"] == "seen" && line["worker"] == "worker-1" && line["time"] != nil, "got %v", line)
}

// Who looks at a terminal gets text, if nothing else was asked for; a file or a
// pipe gets JSON.
func TestAutoLogFormat(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	testkit.Must(t, err)
	defer terminal.Close()
	reader, pipe, err := os.Pipe()
	testkit.Must(t, err)
	defer reader.Close()
	defer pipe.Close()
	for _, test := range []struct {
		format string
		out    *os.File
		want   string
	}{
		{"auto", terminal, "text"}, {"auto", pipe, "json"}, {"json", terminal, "json"}, {"text", pipe, "text"},
	} {
		if got := logFormat(config.Log{Format: test.format}, test.out); got != test.want {
			t.Errorf("%s into %s: got %s, want %s", test.format, test.out.Name(), got, test.want)
		}
	}
}

func TestExitStatus(t *testing.T) {
	failure := errors.New("broken")
	for want, err := range map[int]error{
		cli.Done:   nil,
		cli.Failed: failure,
		cli.Usage:  fmt.Errorf("outside: %w", cli.UsageError(failure)),
	} {
		testkit.Equal(t, cli.Status(err), want, "%v: exit status", err)
	}
	testkit.Want(t, cli.UsageError(nil) == nil, "a nil error became a fault")
}

// An error of several lines has the name of the program before each of them.
func TestPrintError(t *testing.T) {
	var out bytes.Buffer
	cli.PrintError(&out, "cabrank", errors.New("first\nsecond\n")) //nolint:revive // what other packages return may end so
	got, want := out.String(), "cabrank: first\ncabrank: second\n"
	testkit.Want(t, got == want, "got %q, want %q", got, want)
}

// Durations have their unit in both forms of the log.
func TestLogSpellsDurations(t *testing.T) {
	for format, want := range map[string]string{"json": `,"after":"1.5s"}`, "text": " level=DEBUG msg=ready after=1.5s"} {
		var out bytes.Buffer
		newLogger(format, slog.LevelDebug, &out).Debug("ready", "after", 1500*time.Millisecond)
		testkit.Want(t, bytes.HasSuffix(out.Bytes(), []byte(want+"\n")), "%s: got %q, want it to end with %q", format, out.String(), want)
	}
}
