package handover

import (
	"bytes"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// manager is a service manager that listens.
func manager(t *testing.T, name string) func() string {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	testkit.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	return func() string {
		t.Helper()
		testkit.Must(t, conn.SetReadDeadline(time.Now().Add(bound)))
		b := make([]byte, 4096)
		n, err := conn.Read(b)
		testkit.Must(t, err)
		return string(b[:n])
	}
}

func TestNotifier(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	said := manager(t, path)
	n := newNotifier(map[string]string{notifySocket: path}, quiet())
	for _, tc := range []struct {
		tell func()
		want string
	}{
		{n.Ready, "READY=1"},
		{n.Stopping, "STOPPING=1"},
		{func() { n.MainPID(4711) }, "MAINPID=4711"},
	} {
		tc.tell()
		testkit.Equal(t, said(), tc.want, "told")
	}
	n.Reloading()
	got := said()
	testkit.Want(t, strings.HasPrefix(got, "RELOADING=1\nMONOTONIC_USEC=") && !strings.HasSuffix(got, "=0"), "got %q", got)
}

// A manager that does not read holds up no stop.
func TestNotifyNobodyReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	manager(t, path)
	n := newNotifier(map[string]string{notifySocket: path}, quiet())
	for err := error(nil); err == nil; { // until its queue is full
		err = n.send(time.Millisecond, "STATUS=more")
	}
	began := time.Now()
	n.Stopping()
	took := time.Since(began)
	testkit.Want(t, took <= notifyLimit/2, "to say that it stops took %v", took)
}

func TestNoManager(t *testing.T) {
	var none *Notifier
	none.Ready()
	none.Watch(nil, func() bool { t.Error("asked"); return true })
	for _, path := range []string{"", "relative", "vsock:2:1"} {
		testkit.Want(t, newNotifier(map[string]string{notifySocket: path}, quiet()) == nil, "%q is taken for a socket", path)
	}
}

// A manager that is gone is a warning, once.
func TestManagerThatIsGone(t *testing.T) {
	var log bytes.Buffer
	n := newNotifier(map[string]string{notifySocket: filepath.Join(t.TempDir(), "none")}, slog.New(slog.NewTextHandler(&log, nil)))
	n.Ready()
	n.Stopping()
	testkit.Equal(t, strings.Count(log.String(), "service manager cannot be told"), 1, "warnings in\n%s", &log)
}

// The watchdog hears of a process that is alive, and of no other.
func TestWatchdog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	said := manager(t, path)
	n := newNotifier(map[string]string{notifySocket: path, watchdogTime: "2000"}, quiet())
	stop, asked := make(chan struct{}), 0
	done := make(chan struct{})
	go func() { // ends by stop
		defer close(done)
		n.Watch(stop, func() bool { asked++; return asked != 1 })
	}()
	testkit.Equal(t, said(), "WATCHDOG=1", "told")
	close(stop)
	<-done
	testkit.Want(t, asked >= 2, "a dead process was said to be alive")
}
