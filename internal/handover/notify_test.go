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
		if got := said(); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
	n.Reloading()
	if got := said(); !strings.HasPrefix(got, "RELOADING=1\nMONOTONIC_USEC=") || strings.HasSuffix(got, "=0") {
		t.Errorf("got %q", got)
	}
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
	if took := time.Since(began); took > notifyLimit/2 {
		t.Errorf("to say that it stops took %v", took)
	}
}

func TestNoManager(t *testing.T) {
	var none *Notifier
	none.Ready()
	none.Watch(nil, func() bool { t.Error("asked"); return true })
	for _, path := range []string{"", "relative", "vsock:2:1"} {
		if newNotifier(map[string]string{notifySocket: path}, quiet()) != nil {
			t.Errorf("%q is taken for a socket", path)
		}
	}
}

// A manager that is gone is a warning, once.
func TestManagerThatIsGone(t *testing.T) {
	var log bytes.Buffer
	n := newNotifier(map[string]string{notifySocket: filepath.Join(t.TempDir(), "none")}, slog.New(slog.NewTextHandler(&log, nil)))
	n.Ready()
	n.Stopping()
	if got := strings.Count(log.String(), "service manager cannot be told"); got != 1 {
		t.Errorf("%d warnings:\n%s", got, &log)
	}
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
	if got := said(); got != "WATCHDOG=1" {
		t.Errorf("got %q", got)
	}
	close(stop)
	<-done
	if asked < 2 {
		t.Error("a dead process was said to be alive")
	}
}
