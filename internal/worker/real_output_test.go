//go:build (real || soak) && linux

package worker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Both streams of every worker come out line by line under its name, the last
// words and a line without end too.
func TestOutputOfWorkers(t *testing.T) {
	h := startHouse(t, func(o *Options) {
		o.Count.N = 2
		o.Command = shell(`echo out; echo err >&2; trap 'printf "last words"; exit 0' TERM; while :; do sleep 0.05; done`)
	})
	for _, worker := range []string{"worker-1", "worker-2"} {
		for _, text := range []string{"out", "err"} {
			h.eventually(worker+" "+text, func() bool { return strings.Contains(h.logs.String(), worker+" | "+text+"\n") })
		}
	}
	h.Stop(context.Background())
	if !strings.Contains(h.logs.String(), "worker-1 | last words\n") {
		t.Error("the last words are missing")
	}
}

// A reader of our output that stalls stalls no worker, and no Stop.
func TestStalledReaderStallsNoWorker(t *testing.T) {
	reader := testkit.NewGate()
	done := filepath.Join(t.TempDir(), "done")
	h := newHouse(t, func(o *Options) {
		o.Output.Writer = reader
		o.Command = append(shell(`yes | head -c 5000000; touch "$1"; exec "$0" test-worker serve`), done)
	})
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.eventually("5 MB to be written", func() bool { _, err := os.Stat(done); return err == nil })
	h.waitReady(1)
	began := time.Now()
	h.Stop(context.Background())
	if took := time.Since(began); took > h.options.StopTimeout+7*time.Second {
		t.Errorf("Stop took %v", took)
	}
	h.checkNothingLeft()
	reader.Open()
	h.eventually("the notice", func() bool { return strings.Contains(reader.String(), "lines dropped") })
}

// A process that left the group and holds the pipes delays neither the restart
// nor Stop.
func TestEscapedProcessHoldsNothingUp(t *testing.T) {
	h := startHouse(t, func(o *Options) {
		o.Command = shell(`setsid sh -c 'echo escaped; exec sleep 1000' & exec "$0" test-worker serve`)
	})
	escapes := func(n int) {
		h.eventually("an escape", func() bool { return strings.Count(h.logs.String(), "worker-1 | escaped\n") == n })
	}
	h.waitReady(1)
	escapes(1)
	pid := h.first().PID
	h.signal(unix.SIGKILL)
	h.eventually("the next process", func() bool { s := h.first(); return s.PID != pid && s.State == Ready })
	escapes(2)
	began := time.Now()
	h.Stop(context.Background())
	if took := time.Since(began); took > h.options.StopTimeout+7*time.Second {
		t.Errorf("Stop took %v", took)
	}
	// They are still there: it was not they who were waited for. Those that became ours
	// are no longer reaped by the supervisor.
	escaped := marked(h.mark)
	for _, pid := range escaped {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	if len(escaped) != 2 {
		t.Errorf("processes %v have escaped, want two", escaped)
	}
	h.eventually("the escaped to end", func() bool {
		_, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		return errors.Is(err, unix.ECHILD) && len(marked(h.mark)) == 0
	})
}
