//go:build (real || soak) && linux

package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R6: an idle worker that does not answer its health check gets no calls, and
// is back with its first byte, on whatever connection.
func TestIdleAndSilentIsSuspect(t *testing.T) {
	h := startHouse(t, func(o *Options) { o.HealthTimeout, o.HangTimeout = 300*time.Millisecond, time.Hour })
	h.waitReady(1)
	pid := h.first().PID
	// A call was given up, whose handler may run on: not to be replaced.
	h.rank.setWork(Work{Left: time.Now()})
	for i, speak := range []func(){
		func() { h.signal(unix.SIGHUP) },
		func() { h.rank.setWork(Work{Left: time.Now(), Heard: time.Now()}) },
	} {
		h.waitState(Ready)
		h.signal(unix.SIGHUP)
		h.waitState(Suspect)
		rank := h.rank.seen()
		testkit.Want(t, rank.suspect["worker-1"] && len(rank.up) == 1, "the rank knows %+v", rank)
		speak()
		h.eventually("the worker's return", func() bool { return strings.Count(h.logs.String(), "worker speaks again") > i })
	}
	got := h.first()
	testkit.Want(t, got.PID == pid, "process %d was replaced by %d", pid, got.PID)
}

// R6: an idle worker that misses three checks is replaced.
func TestIdleAndDeafIsReplaced(t *testing.T) {
	h := startHouse(t, func(o *Options) { o.HealthTimeout, o.HangTimeout = 300*time.Millisecond, time.Second })
	h.waitReady(1)
	pid := h.first().PID
	h.signal(unix.SIGHUP)
	h.waitProcess(pid)
	got := h.first().Restarts
	testkit.Want(t, got[CauseHung] == 1 && len(got) == 1, "restarts %v, want one of a hung worker", got)
}

// R6: a worker with calls in flight is replaced when it is silent and still for
// the hang timeout, and not while one of its processes computes.
func TestSilentAndStillIsReplaced(t *testing.T) {
	for _, test := range []struct {
		name    string
		command []string
		timeout time.Duration
		hung    bool
	}{
		{"still", self("serve"), time.Second, true},
		// Longer: on a busy machine a process that computes gets nothing for a while.
		{"computes", shell(`while :; do :; done & "$0" test-worker serve`), 3 * time.Second, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := startHouse(t, func(o *Options) {
				o.Command, o.HangTimeout = test.command, test.timeout
				o.HealthTimeout = 20 * time.Millisecond
			})
			h.waitReady(1)
			pid := h.first().PID
			testkit.Must(t, unix.Kill(h.serverPID(), unix.SIGHUP))
			began := time.Now()
			h.rank.setWork(Work{InFlight: 1, Owed: began, Heard: began})
			if test.hung {
				h.eventually("another process", func() bool { s := h.first(); return s.PID != pid && s.PID != 0 })
				h.rank.setWork(Work{})
				if got := h.first().Restarts[CauseHung]; got != 1 || time.Since(began) < test.timeout {
					t.Errorf("%d restarts of a hung worker after %v", got, time.Since(began))
				}
				return
			}
			h.eventually("two timeouts", func() bool { return time.Since(began) > 2*test.timeout })
			// A busy machine may give it nothing for an eighth of the timeout: then it is suspect.
			if got := h.first(); got.PID != pid || got.State != Ready && got.State != Suspect {
				t.Errorf("a computing worker is %v, process %d, was %d", got.State, got.PID, pid)
			}
		})
	}
}

// R6: a server that dies under a leader that lives on is out without being asked; the
// next one of the same leader is in.
func TestServerDiesUnderItsLeader(t *testing.T) {
	word := filepath.Join(t.TempDir(), "word")
	h := startHouse(t, func(o *Options) {
		o.HealthInterval = time.Hour // nobody asks
		o.Command = append(shell(`"$0" test-worker serve; until test -e "$1"; do sleep 0.05; done; "$0" test-worker serve`), word)
	})
	h.waitReady(1)
	leader, server := h.first().PID, h.serverPID()
	testkit.Must(t, unix.Kill(server, unix.SIGKILL))
	h.eventually("the worker to be out", func() bool { return h.rank.ready() == 0 })
	testkit.Must(t, os.WriteFile(word, nil, 0o600))
	h.waitReady(1)
	now := h.serverPID()
	testkit.Want(t, now != server && h.first().PID == leader, "server %d, was %d; leader %d, was %d", now, server, h.first().PID, leader)
}

// A leader whose server never comes back is restarted like one that never
// became ready.
func TestServerStaysAway(t *testing.T) {
	h := startHouse(t, func(o *Options) {
		o.BootTimeout = 2 * time.Second
		o.Command = shell(`"$0" test-worker serve & wait; sleep 1000`)
	})
	h.waitReady(1)
	testkit.Must(t, unix.Kill(h.serverPID(), unix.SIGKILL))
	h.waitState(NotServing)
	h.eventually("another process", func() bool { s := h.first(); return s.Restarts[CauseBootTimeout] >= 1 && s.State == Ready })
}
