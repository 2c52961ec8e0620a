//go:build (real || soak) && linux

package operations_test

import (
	"context"
	"errors"
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
	"github.com/cabrank/cabrank/test/real/harness"
)

// R20: upgrades in a row, the program replaced in between, while callers never
// pause: no call and no stream fails, none runs twice, the probes never say no,
// and the control, the metrics and the probes are the new process's.
func TestUpgradeUnderLoad(t *testing.T) {
	for _, transport := range []string{"tcp", "unix"} {
		t.Run(transport, func(t *testing.T) {
			m := harness.StartManaged(t, nil, nil, slices.Concat([]string{"--transport", transport, "--workers", "2", "--slots", "8", "--"}, harness.FaultWorker(t, "-metrics"))...)
			m.WaitWorkers(2)
			m.WaitReady(harness.Patience)
			loads := []*harness.Load{harness.StartLoad(t, m.Addr, 3, harness.ShortWork), harness.StartLoad(t, m.Addr, 3, 0)}
			streams := harness.StartLoop(t, 2, harness.Working(workpb.NewWorkClient(harness.Dial(t, m.Addr)), chatOnce))
			probe := m.WatchProbe("readiness")
			command := func() {
				testkit.Must(t, m.Control.Run(harness.Patience, "upgrade"))
			}
			for _, ask := range []func(){command, func() { m.SignalTo(m.Main, syscall.SIGUSR2) }, command} {
				loads[0].WaitAnswered(t, "", 20)
				m.Install()
				m.UpgradeBy(ask)
				loads[0].WaitAnswered(t, "", 20)
				m.WantScrape()
			}
			streams.WantNoFailure()
			calls := 0
			for _, l := range loads {
				calls += len(l.WantNoFailure(t))
			}
			t.Logf("%d calls", calls)
			for status, times := range probe.Stop() {
				testkit.Want(t, status == http.StatusOK, "readiness answered %d %d times", status, times)
			}
			m.WantNoStrangers()
			if ended := m.LogLines("worker ended"); len(ended) > 0 {
				t.Errorf("a worker ended: %v", ended[0])
			}
			m.End()
			for id, times := range m.Taken() {
				if times > 2 { // both loads use the same ids
					t.Errorf("call %s ran %d times", id, times)
				}
			}
		})
	}
}

// moody is a fault worker that does what the file beside it says at its start.
func moody(t *testing.T) (worker []string, be func(mood string)) {
	t.Helper()
	mood := filepath.Join(t.TempDir(), "mood")
	be = func(text string) {
		testkit.Must(t, os.WriteFile(mood, []byte(text), 0o600))
	}
	be("")
	return append([]string{"sh", "-c", `. "$0"; exec "$@"`, mood}, harness.FaultWorker(t)...), be
}

// startMoody starts cabrank over two moody workers, and a load.
func startMoody(t *testing.T, flags ...string) (m *harness.Managed, l *harness.Load, be func(string)) {
	t.Helper()
	worker, be := moody(t)
	m = harness.StartManaged(t, nil, nil, slices.Concat([]string{"--transport", "unix", "--workers", "2", "--slots", "8"}, flags, []string{"--"}, worker)...)
	m.WaitWorkers(2)
	l = harness.StartLoad(t, m.Addr, 4, harness.ShortWork)
	l.WaitAnswered(t, "", 10)
	return m, l, be
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
			if m.Install(); tc.program != "" {
				m.InstallText([]byte(tc.program))
			}
			be(tc.mood)
			before := len(m.LogLines("no upgrade, nothing has changed"))
			m.SignalTo(m.Main, syscall.SIGUSR2)
			m.Wait(harness.Patience, "the failure", func() bool { return len(m.LogLines("no upgrade, nothing has changed")) > before })
			testkit.Says(t, m.LogLines("no upgrade, nothing has changed")[before].Text("error"), tc.want)
			m.WantUnharmed(l)
		})
	}
	m.Install()
	be("")
	m.Upgrade()
	m.WantUnharmed(l)
	l.Stop()
}

// What is wrong with the configuration is told by `cabrank upgrade`, and what is wrong
// with the command line, which a new version may not take any more.
func TestUpgradeTellsFaults(t *testing.T) {
	file := mountFile(t, "workers: {count: 2}\n")
	m, l, _ := startMoody(t, "--config", file.path())
	file.replace("workers: {count: two}\nlog: {colour: red}\n")
	wantNoUpgrade(t, m, "cabrank: the new process refuses what it was started with, nothing has changed\n",
		"cabrank: "+file.path()+":1: workers.count: ", "cabrank: "+file.path()+":2: log.colour: ")
	file.replace("access_log: /nowhere/calls.log\n")
	wantNoUpgrade(t, m, "access log: open /nowhere/calls.log: no such file or directory")
	file.replace("workers: {count: 2}\n")
	m.InstallText([]byte("#!/bin/sh\nexec " + harness.CabrankBinary(t) + " --no-such \"$@\"\n"))
	wantNoUpgrade(t, m, "cabrank: unknown flag: --no-such")
	m.WantUnharmed(l)
	l.Stop()
}

// wantNoUpgrade has the command fail with all of these words.
func wantNoUpgrade(t *testing.T, m *harness.Managed, words ...string) {
	t.Helper()
	err := m.Control.Run(harness.Patience, "upgrade")
	for _, want := range words {
		testkit.Want(t, err != nil && strings.Contains(err.Error(), want), "got %v, want %q in it", err, want)
	}
}

// A control socket whose file somebody has removed, who tidies up or has mounted
// something over it, is made anew by the next upgrade: else there would be no way to it
// but a stop, and with a path that was asked for no upgrade either.
func TestUpgradeMakesTheControlAnew(t *testing.T) {
	for name, flags := range map[string][]string{
		"automatic": nil,
		"named":     {"--control", filepath.Join(harness.ShortTempDir(t), "folder", "c.sock")},
	} {
		t.Run(name, func(t *testing.T) {
			m, l, _ := startMoody(t, flags...)
			testkit.Must(t, os.RemoveAll(filepath.Dir(m.Control.Socket)))
			m.UpgradeBy(func() { m.SignalTo(m.Main, syscall.SIGUSR2) })
			_, err := m.Control.Status()
			testkit.Want(t, err == nil, "the new process has no control: %v", err)
			m.WantUnharmed(l)
			l.Stop()
		})
	}
}

// A second upgrade during one is refused, and does not disturb it.
func TestUpgradeTwiceAtOnce(t *testing.T) {
	m, l, be := startMoody(t)
	be("sleep 0.7")
	m.StartUpgrade()
	m.SignalTo(m.Main, syscall.SIGUSR2)
	m.WaitLog(harness.Patience, "an upgrade is under way already")
	m.WaitLog(harness.Patience, "took over")
	m.Main = m.Successor()
	m.WaitLog(harness.Patience, "the old process has ended")
	m.WantUnharmed(l)
	l.Stop()
}

// A stream that outlasts the drain is told by the old process, while the new one
// serves (R17, R20).
func TestUpgradeCutsWhatStays(t *testing.T) {
	m, l, _ := startMoody(t, "--drain-timeout", "500ms")
	stream, err := workpb.NewWorkClient(harness.Dial(t, m.Addr)).Chat(t.Context())
	testkit.Must(t, err)
	testkit.Must(t, stream.Send(&workpb.ChatMessage{Text: "hello"}))
	_, err = stream.Recv()
	testkit.Must(t, err)
	m.Upgrade()
	_, err = stream.Recv()
	harness.WantStatus(t, err, codes.Unavailable, "cabrank: shutting down")
	m.WantUnharmed(l)
	l.Stop()
}

// SIGTERM to the new process while the old one still drains: the new one ends
// after it, since a service manager would kill what is left behind.
func TestStopAfterUpgrade(t *testing.T) {
	m, l, _ := startMoody(t, "--drain-timeout", "10s")
	held := harness.GoIo(t.Context(), harness.Dial(t, m.Addr), "held", 1500*time.Millisecond)
	m.Wait(harness.Patience, "the call", func() bool { return m.Taken()["held"] > 0 })
	old := m.Main
	m.SignalTo(old, syscall.SIGUSR2)
	m.WaitLog(harness.Patience, "took over")
	m.Main = m.Successor()
	m.SignalTo(m.Main, syscall.SIGTERM)
	(<-held).WantOK(t)
	m.WantEnd(old, 0)
	m.WantEnd(m.Main, 0)
	testkit.Want(t, len(m.LogLines("the old process has ended")) != 0, "the new process has ended first")
	m.WantNothingLeft()
	l.Stop()
}

// cabrank upgrade --upgrade-workers N begins with N and has all when the old process has gone.
func TestUpgradeWorkers(t *testing.T) {
	m := harness.StartManaged(t, nil, nil, slices.Concat([]string{"--transport", "unix", "--workers", "3", "--"}, harness.FaultWorker(t))...)
	m.WaitWorkers(3)
	l := harness.StartLoad(t, m.Addr, 4, harness.ShortWork)
	held := harness.GoIo(t.Context(), harness.Dial(t, m.Addr), "held", 2*time.Second)
	l.WaitAnswered(t, "", 10)
	testkit.Must(t, m.Control.Run(harness.Patience, "upgrade", "--upgrade-workers", "1"))
	m.WaitLog(harness.Patience, "took over")
	until, _, _ := strings.Cut(m.Log(), `"took over"`)
	testkit.Equal(t, strings.Count(until, `"worker ready"`), 4, "workers that had been ready when the new process took over, 3 and 1")
	l.WaitAnswered(t, "", 20)
	(<-held).WantOK(t)
	m.Main = m.Successor()
	m.Wait(harness.Patience, "three workers", func() bool { return len(m.LogLines("worker ready")) == 6 })
	l.WantNoFailure(t)
}

// As PID 1 an upgrade would end the container: it is refused, with a hint.
func TestUpgradeAsPID1(t *testing.T) {
	c := harness.StartControlledBy(t, harness.PIDNamespace(t), "--workers", "1")
	c.WaitLog(harness.Patience, "worker ready")
	first := harness.ChildOf(t, c.PID)
	c.SignalTo(first, syscall.SIGUSR2)
	c.WaitLog(harness.Patience, "roll the container instead")
	c.SignalTo(first, syscall.SIGTERM)
	c.WantExit(harness.StopBound, 0)
}

// chatMessages times chatPause is how long one stream takes.
const (
	chatMessages = 10
	chatPause    = 30 * time.Millisecond
)

// chatOnce has a stream that goes on for some time.
func chatOnce(ctx context.Context, client workpb.WorkClient) error {
	stream, err := client.Chat(ctx)
	if err != nil {
		return err
	}
	for n := range chatMessages {
		if err := stream.Send(&workpb.ChatMessage{Text: fmt.Sprint(n)}); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		reply, err := stream.Recv()
		if err != nil {
			return err
		}
		if reply.GetText() != fmt.Sprint(n) {
			return fmt.Errorf("message %d came back as %q", n, reply.GetText())
		}
		<-time.After(chatPause) // a stream is long because it pauses
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	if _, err = stream.Recv(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the end of a stream: %w", err)
	}
	return nil
}
