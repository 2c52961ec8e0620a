//go:build real || soak

package packages_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/test/real/harness"
)

// startRun starts an installed `cabrank run` over one worker and waits until it listens.
func startRun(t *testing.T, command func(args ...string) *exec.Cmd, worker ...string) *harness.Cabrank {
	t.Helper()
	cmd := command(append([]string{
		"run", "--listen", "127.0.0.1:0", "--probes", "off", "--metrics", "off", "--control", "off",
		"--transport", "unix", "--workers", "1", "--",
	}, worker...)...)
	c := &harness.Cabrank{Process: harness.StartCommand(t, cmd), Ended: true}
	c.Addr = c.Listening("listening")
	return c
}

// serves holds an installed cabrank to a call that its worker answers, and to
// its end by SIGTERM. The process that was started must be the program, if that is given.
func serves(t *testing.T, program string, command func(args ...string) *exec.Cmd, worker ...string) {
	t.Helper()
	c := startRun(t, command, worker...)
	harness.CallIo(t.Context(), harness.Dial(t, c.Addr), "1", 0).WantOK(t)
	if got, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", c.PID)); program != "" && (err != nil || got != program) {
		t.Errorf("the process is %s (%v), want %s", got, err, program)
	}
	c.Stop()
}

// wantLine holds that a command ends at once, because nothing could be started, with one
// line that contains some words.
func wantLine(t *testing.T, cmd *exec.Cmd, words ...string) {
	t.Helper()
	p := harness.StartCommand(t, cmd)
	p.WantExit(harness.Patience, 2)
	wantWords(t, p.Log()+p.Output(), append(words, "cabrank: ")...)
}

func wantWords(t *testing.T, line string, words ...string) {
	t.Helper()
	if strings.Count(line, "\n") != 1 {
		t.Errorf("want one line, got\n%s", line)
	}
	for _, word := range words {
		if !strings.Contains(line, word) {
			t.Errorf("want a line with %q, got\n%s", word, line)
		}
	}
}
