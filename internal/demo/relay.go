package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	// stopTimeout is how long a relay may take to stop before it is killed:
	// more than the drain and stop timeouts that `cabrank run` has by default.
	stopTimeout = 30 * time.Second
	// keptLines is how much of a relay's log is shown if it fails to start.
	keptLines = 20
	// maxLogLine bounds one line of the log; cabrank splits lines over 64 KiB,
	// and quoting may double them.
	maxLogLine = 256 << 10
)

// A Relay is `cabrank run` as a child process.
//
// Shape: made by StartRelay, ended by exactly one Stop.
type Relay struct {
	// Addr is HOST:PORT of the door.
	Addr string

	stop context.CancelFunc
	done chan error
}

// StartRelay runs command, which must log JSON to stderr, and returns when the
// line `listening` has told its address.
//
// Errors: the command cannot be started, or ended or outlived ctx without that
// line; then the end of its log is part of the error, and nothing is left
// running. The end of ctx stops a relay that has started, too.
func StartRelay(ctx context.Context, command ...string) (*Relay, error) {
	ctx, stop := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	// TERM lets the relay stop its workers; only a relay that ignores it for
	// stopTimeout is killed.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	out, in := io.Pipe()
	cmd.Stderr = in
	if err := cmd.Start(); err != nil {
		stop()
		return nil, err
	}

	addr := make(chan string, 1)
	tail := make(chan []string, 1)
	go func() { tail <- readLog(out, addr) }()
	relay := &Relay{stop: stop, done: make(chan error, 1)}
	go func() {
		err := cmd.Wait()
		_ = in.Close() // ends readLog; never fails
		if lines := <-tail; err != nil {
			err = fmt.Errorf("%w\n%s", err, strings.Join(lines, "\n"))
		}
		relay.done <- err
	}()
	select {
	case relay.Addr = <-addr:
		return relay, nil
	case err := <-relay.done:
		stop()
		if err == nil {
			err = errors.New("it ended at once")
		}
		return nil, fmt.Errorf("start the relay: %w", err)
	}
}

// Stop ends the relay and its workers and waits until they are gone.
//
// Errors: the relay ended other than by exit 0.
func (r *Relay) Stop() error {
	r.stop()
	err := <-r.done
	// Wait reports the cancellation that asked for a clean exit.
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// readLog sends the address of the first line `listening` and returns the last
// lines when the log ends.
func readLog(log io.Reader, addr chan<- string) []string {
	var tail []string
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, maxLogLine)
	for found := false; lines.Scan(); {
		if len(tail) == keptLines {
			tail = tail[1:]
		}
		tail = append(tail, lines.Text())
		if a := listeningAddr(lines.Bytes()); a != "" && !found {
			found = true
			addr <- a
		}
	}
	// A line beyond the bound ends the scan, not the relay.
	_, _ = io.Copy(io.Discard, log)
	return tail
}

func listeningAddr(line []byte) string {
	var event struct {
		Msg  string `json:"msg"`
		Addr string `json:"addr"`
	}
	if !bytes.HasPrefix(line, []byte("{")) || json.Unmarshal(line, &event) != nil || event.Msg != "listening" {
		return ""
	}
	return event.Addr
}
