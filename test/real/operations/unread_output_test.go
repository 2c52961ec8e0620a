//go:build (real || soak) && linux

package operations_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// fullPipe returns a pipe that takes nothing more, until somebody reads.
func fullPipe(t *testing.T) (reader, writer *os.File) {
	t.Helper()
	reader, writer, err := os.Pipe()
	testkit.Must(t, err)
	t.Cleanup(func() { reader.Close() })
	testkit.Must(t, writer.SetWriteDeadline(time.Now()))
	fd := int(writer.Fd())
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, 4096); err != nil {
		t.Fatal(err)
	}
	testkit.Must(t, unix.SetNonblock(fd, true))
	for err == nil {
		_, err = unix.Write(fd, []byte(strings.Repeat("x", 64)))
	}
	if err := unix.SetNonblock(fd, false); err != nil { // as a shell gives it
		t.Fatal(err)
	}
	return reader, writer
}

// startUnread starts cabrank over fault workers with output as its stdout and
// stderr, and a control socket. Its addresses are chosen, for nobody can read
// them.
func startUnread(t *testing.T, output *os.File, worker []string, flags ...string) *harness.Controlled {
	t.Helper()
	socket := filepath.Join(harness.ShortTempDir(t), "c.sock")
	port := testkit.FreePorts(t, 3)
	at := func(n int) string { return fmt.Sprintf("127.0.0.1:%d", port+n) }
	p := startTo(t, output, harness.RunLine(t, worker, append([]string{"--listen", at(0), "--probes", at(1), "--metrics", at(2), "--control", socket}, flags...)...))
	return harness.Control(&harness.Cabrank{Process: p, Addr: at(0), ProbesAddr: at(1), MetricsAddr: at(2), Ended: true}, socket)
}

// startTo starts a command line whose stdout and stderr are output, which is closed here.
func startTo(t *testing.T, output *os.File, line []string) *harness.Process {
	t.Helper()
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdout = output
	return harness.StartCommand(t, cmd)
}

// Nobody reads what cabrank writes, from its first line on: it gets ready,
// replaces workers that die, takes connections and calls, does what it is asked,
// and ends in time. When somebody reads again, the log says what it has lost.
func TestNobodyReadsTheLog(t *testing.T) {
	reader, writer := fullPipe(t)
	c := startUnread(t, writer, harness.FaultWorker(t), "--workers", "2", "--log-level", "debug", "--log-format", "text")
	c.WaitReady(harness.Patience)
	c.AwaitReady(2)
	liveness := c.WatchProbe("liveness")
	for range 3 {
		c.KillAndAwait("worker-1", 2)
	}
	// A client of the control that does not read stops nothing either.
	deaf, err := net.Dial("unix", c.Socket)
	testkit.Must(t, err)
	defer deaf.Close()
	_, err = io.WriteString(deaf, "GET /v1/events HTTP/1.1\r\nHost: cabrank\r\n\r\n")
	testkit.Must(t, err)
	for _, command := range []string{"reload", "restart", "upgrade"} {
		testkit.Must(t, c.Op.Run(harness.StopBound, command))
	}
	harness.CallIo(t.Context(), harness.Dial(t, c.Addr), "1", 0).WantOK(t)
	for status, seen := range liveness.Stop() {
		testkit.Want(t, status != http.StatusServiceUnavailable, "liveness was %d, %d times", status, seen)
	}
	testkit.Must(t, c.Op.Run(harness.StopBound, "stop"))
	c.WaitNoneLeft(harness.Patience)
	reader.Close()
}

// What workers have said to nobody is counted.
func TestUnreadLinesAreCounted(t *testing.T) {
	_, writer := fullPipe(t)
	chatty := append([]string{"sh", "-c", `yes | head -c 2000000; exec "$0" "$@"`}, harness.FaultWorker(t)...)
	c := startUnread(t, writer, chatty, "--workers", "1")
	c.WaitReady(harness.Patience)
	got := c.Metric("cabrank_lines_dropped_total", "of", "workers")
	testkit.Want(t, got >= 100_000, "%v of a million lines count as dropped", got)
	testkit.Must(t, c.Op.Run(harness.StopBound, "stop"))
}

// The accept loop logs too: callers who were refused, or came and went, while
// nobody read the log do not shut the door.
func TestNobodyReadsTheLogOfTheDoor(t *testing.T) {
	t.Setenv("CABRANK_LIMITS_CONNECTIONS", "4")
	_, writer := fullPipe(t)
	c := startUnread(t, writer, harness.FaultWorker(t), "--workers", "1")
	c.WaitReady(harness.Patience)
	for range 3 {
		var came []net.Conn
		for range 8 {
			conn := testkit.Dial(t, c.Addr)
			came = append(came, conn)
		}
		for _, conn := range came {
			conn.Close()
		}
	}
	testkit.Eventually(t, harness.Patience, "an answered call", func() bool {
		conn := harness.Dial(t, c.Addr)
		defer conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return harness.CallIo(ctx, conn, "1", 0).Err == nil
	})
	c.Stop()
}

// A start that fails ends, too, with nobody to read why.
func TestNobodyReadsWhyItFailed(t *testing.T) {
	_, writer := fullPipe(t)
	startTo(t, writer, harness.RunLine(t, []string{"no-such-program"})).WantExit(harness.Patience, 2)
}

// What was lost while nobody read is counted in the log, where it is missing.
func TestLogTellsWhatItLost(t *testing.T) {
	for i := range 50 { // each a line with every reload
		t.Setenv(fmt.Sprintf("CABRANK_MAX_HOPS%d", i), "1")
	}
	reader, writer := fullPipe(t)
	c := startUnread(t, writer, harness.FaultWorker(t), "--workers", "1", "--log-format", "text")
	c.WaitReady(harness.Patience)
	for range 120 {
		testkit.Must(t, c.Op.Run(harness.Patience, "reload"))
	}
	read := make(chan struct{})
	go func() { // ends with cabrank, whose end closes the pipe
		defer close(read)
		_, _ = io.Copy(&c.Stderr, reader)
	}()
	c.WaitLog(harness.Patience, "log lines dropped")
	c.Stop()
	<-read
}

// Who read the output has gone (| head -2): cabrank goes on, and a TERM still
// lets the calls in flight end.
func TestReaderOfTheOutputGoes(t *testing.T) {
	reader, writer, err := os.Pipe()
	testkit.Must(t, err)
	c := startUnread(t, writer, harness.FaultWorker(t), "--workers", "1")
	c.WaitReady(harness.Patience)
	testkit.Must(t, reader.Close())
	conn := harness.Dial(t, c.Addr)
	for i := range 10 { // of which the worker writes lines
		harness.CallIo(t.Context(), conn, fmt.Sprint(i), 0).WantOK(t)
	}
	c.KillAndAwait("worker-1", 1)
	long := harness.GoIo(t.Context(), conn, "long", time.Second)
	c.WaitMetric("cabrank_in_flight", 1, "worker", "worker-1")
	c.Stop()
	(<-long).WantOK(t)
}
