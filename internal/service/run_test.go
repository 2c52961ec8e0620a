package service

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/worker"
)

// A command that is not there gets the hint that fits how it was written.
func TestStartHint(t *testing.T) {
	for _, test := range []struct {
		command []string
		err     error
		want    string
	}{
		{config.DefaultCommand(), exec.ErrNotFound, "the workers are gruf's"},
		{[]string{"ruby worker.rb"}, exec.ErrNotFound, "leave out the quotes"},
		{[]string{"ruby bin/worker.rb"}, fs.ErrNotExist, "leave out the quotes"},
		{[]string{"cd", "app"}, exec.ErrNotFound, "not by a shell"},
		{[]string{"./worker"}, fs.ErrNotExist, ""},
		{[]string{"./worker"}, fs.ErrPermission, ""},
		{[]string{"worker"}, nil, ""},
		{config.DefaultCommand(), &fs.PathError{Op: "open", Path: os.DevNull, Err: fs.ErrNotExist}, ""},
	} {
		got := startHint(test.command, test.err)
		testkit.Want(t, (got == "") == (test.want == "") && strings.Contains(got, test.want),
			"%q, %v: %q, want %q", test.command, test.err, got, test.want)
	}
}

// The first line of the log has what was chosen for the user, and never the
// command, which may hold secrets.
func TestAnnounce(t *testing.T) {
	for _, test := range []struct {
		cfg  config.Config
		want string
	}{
		{config.Config{Command: []string{"w", "--token=plum"}, Workers: worker.Settings{Count: worker.Amount{N: 3}, Slots: worker.Amount{N: 2}, Transport: "tcp"}},
			"msg=starting version=dev workers=3 transport=tcp slots=2\n"},
		{config.Config{File: "cabrank.yml", Upstreams: []string{"a:1", "b:1"}, Workers: worker.Settings{Slots: worker.Amount{N: 5}}},
			"msg=starting version=dev config=cabrank.yml upstreams=2 slots=5\n"},
	} {
		var log bytes.Buffer
		s := &service{build: admin.Build{Version: "dev"}, cfg: &test.cfg, log: slog.New(slog.NewTextHandler(&log, nil))}
		s.announce()
		got := log.String()
		testkit.Want(t, strings.HasSuffix(got, test.want), "got %q, want %q", got, test.want)
	}
}

// SIGHUP restarts the workers, unless it means that the terminal has gone.
func TestHangupStopsOnlyWithoutItsTerminal(t *testing.T) {
	for lost, want := range map[bool]int{false: 0, true: 1} {
		s := &service{log: slog.New(slog.DiscardHandler), orders: newOrders()}
		ctx, cancel := context.WithCancel(t.Context())
		s.obey(ctx, syscall.SIGHUP, func() bool { return lost }, &cli.Echoes{})
		cancel()
		testkit.Equal(t, len(s.orders.stop), want, "terminal lost %t: stops asked for", lost)
	}
}

// A signal that asks for something while the process starts does not end it, and is kept
// until there is somebody to obey.
func TestSignalsOfTheStartAreKept(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("under nohup")
	}
	ctx := HoldSignals(t.Context())
	testkit.Must(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	from := heldSignals(ctx)
	from.lost = func() bool { return true } // so that the signal leaves a trace here
	s := &service{log: slog.New(slog.DiscardHandler), orders: newOrders()}
	defer s.heed(from)()
	testkit.Equal(t, <-s.orders.stop, os.Signal(syscall.SIGHUP), "the signal")
}

// A second signal is in a hurry; who stops politely waits with the others. The
// first one is in none, also when cabrank drains by itself, after an upgrade (R17).
func TestWhoIsInAHurry(t *testing.T) {
	for _, test := range []struct {
		asked bool // by somebody before
		next  os.Signal
		want  bool
	}{
		{true, syscall.SIGTERM, true},
		{true, syscall.SIGINT, true},
		{true, stopRequest{now: true}, true},
		{true, stopRequest{}, false},
		{false, syscall.SIGTERM, false},
		{false, stopRequest{now: true}, true},
		{false, stopRequest{}, false},
	} {
		s := &service{log: slog.New(slog.DiscardHandler), orders: newOrders()}
		draining, over := context.WithCancel(t.Context())
		hurried, ended := false, make(chan struct{})
		go func() {
			s.awaitHurry(draining, test.asked, func() { hurried = true })
			close(ended)
		}()
		s.orders.askToStop(test.next)
		if !test.want {
			testkit.Eventually(t, 20*time.Second, "the request to be seen", func() bool { return len(s.orders.stop) == 0 })
			over()
		}
		<-ended
		over()
		testkit.Want(t, hurried == test.want, "%v is in a hurry: %t (asked before: %t)", test.next, hurried, test.asked)
	}
}

// What is waited for is looked at before the end of a phase counts, which has one cause.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began, times := newPhase(), time.Now(), 0
		third := func() (bool, error) { times++; return times == 3, nil }
		err := await(p, time.Second, third)
		testkit.Want(t, err == nil && time.Since(began) == 2*time.Second, "%v after %v", err, time.Since(began))
		time.AfterFunc(3500*time.Millisecond, func() { p.end(errStopping) })
		if repeat(p, time.Second, func(time.Time) { times++ }); times != 6 {
			t.Errorf("%d times, want 6", times)
		}
		testkit.Is(t, await(p, time.Second, third), errStopping, "at the end")
	})
}

// Nobody is asked for a page that has never been ready: another program may hold the port.
func TestPagesOfStartingProcesses(t *testing.T) {
	m := &scraping{path: "/metrics"}
	for _, state := range worker.States() {
		want := 1
		if state == worker.Starting || state == worker.CrashLoop {
			want = 0
		}
		got := m.targets([]worker.Status{{Name: "worker-1", PID: 7, State: state}, {State: state}})
		testkit.Want(t, len(got) == want, "%v: %d pages", state, len(got))
	}
}
