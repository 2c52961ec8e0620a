//go:build real && linux

package real_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
)

// R20: upgrades in a row, the program replaced in between, while callers never
// pause: no call and no stream fails, none runs twice, the probes never say no,
// and the control, the metrics and the probes are the new process's.
func TestUpgradeUnderLoad(t *testing.T) {
	for _, transport := range []string{"tcp", "unix"} {
		t.Run(transport, func(t *testing.T) {
			m := startManaged(t, nil, nil, slices.Concat([]string{"--transport", transport, "--workers", "2", "--slots", "8", "--"}, faultWorker(t, "-metrics"))...)
			m.waitWorkers(2)
			m.WaitReady(patience)
			loads := []*load{startLoad(t, m.Addr, 3, shortWork), startLoad(t, m.Addr, 3, 0)}
			streams := startChats(t, m.Addr, 2)
			probe := m.watchProbe("readiness")
			command := func() {
				if err := m.control.run(patience, "upgrade"); err != nil {
					t.Error(err)
				}
			}
			for _, ask := range []func(){command, func() { m.signal(m.main, syscall.SIGUSR2) }, command} {
				loads[0].waitAnswered(t, "", 20)
				m.install()
				m.upgradeBy(ask)
				loads[0].waitAnswered(t, "", 20)
				m.wantScrape()
			}
			streams.stop(t)
			calls := 0
			for _, l := range loads {
				all := l.stop()
				calls += len(all)
				for _, o := range failures(all) {
					t.Errorf("call %s: %v", o.id, o.err)
				}
			}
			t.Logf("%d calls", calls)
			for status, times := range probe.stop() {
				if status != http.StatusOK {
					t.Errorf("readiness answered %d %d times", status, times)
				}
			}
			m.wantNoStrangers()
			if ended := m.LogLines("worker ended"); len(ended) > 0 {
				t.Errorf("a worker ended: %v", ended[0])
			}
			m.stop()
			for id, times := range m.taken() {
				if times > 2 { // both loads use the same ids
					t.Errorf("call %s ran %d times", id, times)
				}
			}
		})
	}
}

// wantScrape reads the metrics page, which shows the process that serves.
func (m *managed) wantScrape() {
	m.t.Helper()
	answer, err := http.Get("http://" + m.MetricsAddr + "/metrics")
	if err != nil {
		m.t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(page), "cabrank_") {
		m.t.Errorf("metrics: %d bytes, %v", len(page), err)
	}
}

// wantNoStrangers looks into a worker of the process that serves: nothing of
// cabrank's descriptors, and no variable that was meant for cabrank.
func (m *managed) wantNoStrangers() {
	m.t.Helper()
	pids := m.readyPIDs("worker-1")
	pid := pids[len(pids)-1]
	ours := socketsOf(m.t, m.main)
	if len(ours) < 3 {
		m.t.Errorf("cabrank has the sockets %v", ours)
	}
	for _, socket := range socketsOf(m.t, pid) {
		if slices.Contains(ours, socket) {
			m.t.Errorf("worker %d has cabrank's %s", pid, socket)
		}
	}
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, name := range []string{"CABRANK_UPGRADE_FD", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "NOTIFY_SOCKET", "WATCHDOG_USEC"} {
		if strings.Contains("\x00"+string(environ), "\x00"+name+"=") {
			m.t.Errorf("worker %d has the variable %s", pid, name)
		}
	}
}

// socketsOf returns the sockets that a process has open, "socket:[INODE]".
func socketsOf(t *testing.T, pid int) []string {
	t.Helper()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	var sockets []string
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, "socket:") {
			sockets = append(sockets, target)
		}
	}
	return sockets
}

// moody is a fault worker that does what the file beside it says at its start.
func moody(t *testing.T) (worker []string, be func(mood string)) {
	t.Helper()
	mood := filepath.Join(t.TempDir(), "mood")
	be = func(text string) {
		if err := os.WriteFile(mood, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	be("")
	return append([]string{"sh", "-c", `. "$0"; exec "$@"`, mood}, faultWorker(t)...), be
}

// startMoody starts cabrank over two moody workers, and a load.
func startMoody(t *testing.T, flags ...string) (m *managed, l *load, be func(string)) {
	t.Helper()
	worker, be := moody(t)
	m = startManaged(t, nil, nil, slices.Concat([]string{"--transport", "unix", "--workers", "2", "--slots", "8"}, flags, []string{"--"}, worker)...)
	m.waitWorkers(2)
	l = startLoad(t, m.Addr, 4, shortWork)
	l.waitAnswered(t, "", 10)
	return m, l, be
}

// wantUnharmed holds that the load has not noticed anything, and that nothing
// is left beside the old process, its keeper and its workers.
func (m *managed) wantUnharmed(l *load) {
	m.t.Helper()
	l.waitAnswered(m.t, "", 20)
	for _, o := range failures(l.outcomes()) {
		m.t.Errorf("call %s: %v", o.id, o.err)
	}
	testkit.Eventually(m.t, patience, "only the manager, cabrank, its keeper and two workers", func() bool {
		return len(m.Family()) == 5
	})
	if got := m.Probe("readiness"); got != http.StatusOK {
		m.t.Errorf("readiness %d", got)
	}
}

// R20: a new process that fails before it is ready leaves the old one as it
// was, and its log says why. Then an upgrade that works.
func TestUpgradeThatFails(t *testing.T) {
	m, l, be := startMoody(t, "--boot-timeout", "2s")
	for _, tc := range []struct {
		name, program, mood, want string
	}{
		{"exits at once", "#!/bin/sh\nexit 3\n", "", "exit status 3"},
		{"no program", "\x00", "", "exec format error"},
		{"speaks another language", "#!/bin/sh\necho SSH-2.0-hello >&3; exec sleep 60\n", "", "not a message of cabrank"},
		{"workers crash", "", "exit 7", "ends as soon as it is started: exit status 7"},
		{"workers never ready", "", "exec sleep 60", "not ready within 7s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if m.install(); tc.program != "" {
				m.installText([]byte(tc.program))
			}
			be(tc.mood)
			before := len(m.LogLines("no upgrade, nothing has changed"))
			m.signal(m.main, syscall.SIGUSR2)
			m.wait(patience, "the failure", func() bool { return len(m.LogLines("no upgrade, nothing has changed")) > before })
			if got := m.LogLines("no upgrade, nothing has changed")[before].Text("error"); !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q in it", got, tc.want)
			}
			m.wantUnharmed(l)
		})
	}
	m.install()
	be("")
	m.upgrade()
	m.wantUnharmed(l)
	l.stop()
}

// A second upgrade during one is refused, and does not disturb it.
func TestUpgradeTwiceAtOnce(t *testing.T) {
	m, l, be := startMoody(t)
	be("sleep 0.7")
	m.startUpgrade()
	m.signal(m.main, syscall.SIGUSR2)
	m.WaitLog(patience, "an upgrade is under way already")
	m.WaitLog(patience, "took over")
	m.main = m.successor()
	m.WaitLog(patience, "the old process has ended")
	m.wantUnharmed(l)
	l.stop()
}

// A stream that outlasts the drain is told by the old process, while the new one
// serves (R17, R20).
func TestUpgradeCutsWhatStays(t *testing.T) {
	m, l, _ := startMoody(t, "--drain-timeout", "500ms")
	stream, err := workpb.NewWorkClient(dialLang(t, m.Addr)).Chat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&workpb.ChatMessage{Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	m.upgrade()
	_, err = stream.Recv()
	wantStatus(t, err, codes.Unavailable, "cabrank: shutting down")
	m.wantUnharmed(l)
	l.stop()
}

// SIGTERM to the new process while the old one still drains: the new one ends
// after it, since a service manager would kill what is left behind.
func TestStopAfterUpgrade(t *testing.T) {
	m, l, _ := startMoody(t, "--drain-timeout", "10s")
	held := make(chan outcome, 1)
	go func() { held <- callIo(t.Context(), dialLang(t, m.Addr), "held", 1500*time.Millisecond) }()
	m.wait(patience, "the call", func() bool { return m.taken()["held"] > 0 })
	old := m.main
	m.signal(old, syscall.SIGUSR2)
	m.WaitLog(patience, "took over")
	m.main = m.successor()
	m.signal(m.main, syscall.SIGTERM)
	if got := <-held; got.err != nil {
		t.Errorf("the held call: %v", got.err)
	}
	m.wantEnd(old, 0)
	m.wantEnd(m.main, 0)
	if output := m.Output(); strings.Index(output, fmt.Sprintf("ended %d ", m.main)) < strings.Index(output, fmt.Sprintf("ended %d ", old)) {
		t.Error("the new process has ended first")
	}
	if code := m.ExitCode(patience); code != 0 {
		t.Errorf("the manager ended with exit code %d", code)
	}
	m.wantNothingLeft()
	l.stop()
}

// --upgrade-workers N begins with N and has all when the old process has gone.
func TestUpgradeWorkers(t *testing.T) {
	m := startManaged(t, nil, nil, slices.Concat([]string{"--transport", "unix", "--workers", "3", "--upgrade-workers", "1", "--"}, faultWorker(t))...)
	m.waitWorkers(3)
	l := startLoad(t, m.Addr, 4, shortWork)
	held := make(chan outcome, 1)
	go func() { held <- callIo(t.Context(), dialLang(t, m.Addr), "held", 2*time.Second) }()
	l.waitAnswered(t, "", 10)
	m.signal(m.main, syscall.SIGUSR2)
	m.WaitLog(patience, "took over")
	ready := len(m.LogLines("worker ready"))
	if ready != 4 {
		t.Errorf("%d workers have been ready when the new process took over, want 3 and 1", ready)
	}
	l.waitAnswered(t, "", 20)
	if got := <-held; got.err != nil {
		t.Errorf("the held call: %v", got.err)
	}
	m.main = m.successor()
	m.wait(patience, "three workers", func() bool { return len(m.LogLines("worker ready")) == 6 })
	for _, o := range failures(l.stop()) {
		t.Errorf("call %s: %v", o.id, o.err)
	}
}

// As PID 1 an upgrade would end the container: it is refused, with a hint.
func TestUpgradeAsPID1(t *testing.T) {
	p := StartProcess(t, nil, "/usr/bin/env", slices.Concat(pidNamespace(t), []string{
		cabrankBinary(t), "run", "--listen", "127.0.0.1:0", "--probes", "off", "--metrics", "off",
		"--transport", "unix", "--workers", "1", "--",
	}, faultWorker(t))...)
	p.WaitLog(patience, "worker ready")
	c := Cabrank{Process: p}
	first := childOf(t, p.PID)
	c.signal(first, syscall.SIGUSR2)
	p.WaitLog(patience, "roll the container instead")
	c.signal(first, syscall.SIGTERM)
	if code := p.ExitCode(stopBound); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
}
