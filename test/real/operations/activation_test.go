//go:build (real || soak) && linux

package operations_test

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// ear is the socket on which a service manager hears of its service. It reads all
// the time, since the kernel keeps few messages.
type ear struct {
	t     *testing.T
	path  string
	heard chan string
}

func newEar(t *testing.T) *ear {
	t.Helper()
	e := &ear{t: t, path: filepath.Join(harness.ShortTempDir(t), "notify"), heard: make(chan string, 100)}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: e.path, Net: "unixgram"})
	testkit.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	go func() { // ends with conn
		b := make([]byte, 4096)
		for {
			n, err := conn.Read(b)
			if err != nil {
				return
			}
			if said := string(b[:n]); said != "WATCHDOG=1" {
				e.heard <- said
			}
		}
	}()
	return e
}

// want waits for the next message that is not of the watchdog.
func (e *ear) want(message string) {
	e.t.Helper()
	got := testkit.Take(e.t, e.heard, harness.Patience, "the manager did not hear %q", message)
	testkit.Want(e.t, got == message, "the manager heard %q, want %q", got, message)
}

// Under a service manager: sockets by name and by address, whatever the
// configuration says; readiness, upgrades and the end are told; and the sockets
// go along with an upgrade.
func TestServiceManager(t *testing.T) {
	e := newEar(t)
	metrics := testkit.FreeAddress(t)
	m := harness.StartManaged(t, []string{"NOTIFY_SOCKET=" + e.path, "WATCHDOG_USEC=200000"},
		[]string{"probes=127.0.0.1:0", "grpc=127.0.0.1:0", "cabrank.socket=" + metrics},
		slices.Concat([]string{"--metrics", metrics, "--transport", "unix", "--workers", "1", "--"}, harness.FaultWorker(t))...)
	e.want("READY=1")
	m.WaitReady(harness.Patience)
	for _, msg := range []string{"listening", "probes listening", "metrics listening"} {
		testkit.Equal(t, m.LogLines(msg)[0].Text("from"), "service manager", "%s: from", msg)
	}
	testkit.Want(t, m.MetricsAddr == metrics, "metrics on %s, want %s", m.MetricsAddr, metrics)
	l := harness.StartLoad(t, m.Addr, 2, harness.ShortWork)
	l.WaitAnswered(t, "", 5)
	m.WantNoStrangers()
	for range 2 {
		m.Upgrade()
		e.want(fmt.Sprintf("MAINPID=%d", m.Main))
		e.want("READY=1")
		l.WaitAnswered(t, "", 5)
	}
	got := m.LogLines("listening")
	testkit.Want(t, got[2].Text("from") == "service manager" && got[2].Text("addr") == m.Addr, "after two upgrades: %v", got[2])
	l.WantNoFailure(t)
	m.End()
	e.want("STOPPING=1")
}

// A socket that is none of cabrank's would be one on which nobody ever answers:
// it is a mistake, told in one line.
func TestSocketOfNobody(t *testing.T) {
	address := testkit.FreeAddress(t)
	p := harness.StartLine(t, append([]string{harness.OwnBinary(t), harness.ManagerRole, "cabrank.socket=" + address, "--"},
		harness.RunLine(t, harness.FaultWorker(t), "--control", "off", "--workers", "1")...)...)
	p.ExitCode(harness.Patience)
	testkit.Eventually(t, harness.Patience, "its exit code", func() bool { return strings.Contains(p.Output(), "ended ") })
	if got := harness.LineWith(p.Output(), "ended "); !strings.HasSuffix(got, " 2") {
		t.Errorf("%s, want exit code 2", got)
	}
	want := fmt.Sprintf("the socket \"cabrank.socket\" on %s that the service manager has passed is none of cabrank's", address)
	if got := p.Failure(); !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s…", got, want)
	}
	p.WaitNoneLeft(harness.Patience)
}
