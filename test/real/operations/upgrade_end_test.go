//go:build (real || soak) && linux

package operations_test

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// R20: whichever of the two is killed, whenever: before the listeners have gone
// over the old one goes on, or both are gone with all workers; afterwards the
// new one does.
func TestUpgradeKilled(t *testing.T) {
	for _, slow := range []string{"", "sleep 0.3"} {
		for _, wait := range []time.Duration{0, 30 * time.Millisecond, 150 * time.Millisecond} {
			t.Run(fmt.Sprintf("new, worker %q, after %v", slow, wait), func(t *testing.T) { killNew(t, slow, wait) })
			t.Run(fmt.Sprintf("old, worker %q, after %v", slow, wait), func(t *testing.T) { killOld(t, slow, wait) })
		}
	}
}

func killNew(t *testing.T, slow string, wait time.Duration) {
	t.Helper()
	m, l, be := startMoody(t, "--drain-timeout", "1s", "--stop-timeout", "500ms")
	be(slow)
	next := m.StartUpgrade()
	<-time.After(wait) // the moment is what is tested
	m.KillPID(next)
	m.WantGone(next)
	kept := func() bool { return len(m.LogLines("no upgrade, nothing has changed")) > 0 }
	m.Wait(harness.Patience, "the end of the upgrade", func() bool { return kept() || len(m.LogLines(harness.HandedOver)) > 0 })
	if kept() {
		m.WantUnharmed(l)
		be("")
		m.Upgrade() // it also sweeps what the killed one has left
		m.WantUnharmed(l)
		m.End()
	} else {
		m.WantEnd(m.Main, 0)
		m.WantNoProcess()
	}
	l.Stop()
}

func killOld(t *testing.T, slow string, wait time.Duration) {
	t.Helper()
	m, l, be := startMoody(t, "--drain-timeout", "1s", "--stop-timeout", "500ms")
	be(slow)
	next, old := m.StartUpgrade(), m.Main
	<-time.After(wait)
	_ = syscall.Kill(old, syscall.SIGKILL) // it may have handed over and ended
	m.WaitEnd(old)
	l.Stop()
	if len(m.LogLines("took over")) == 0 && len(m.LogLines("handed over")) == 0 {
		// Either it had the listeners in its hands, or it ends.
		testkit.Eventually(t, harness.Patience, "the new process to end or to take over", func() bool {
			return len(m.LogLines("took over")) > 0 || harness.LineWith(m.Output(), fmt.Sprintf("ended %d ", next)) != ""
		})
	}
	if harness.LineWith(m.Output(), fmt.Sprintf("ended %d ", next)) != "" {
		m.WantNoProcess()
		return
	}
	m.Main = next
	m.WaitLog(harness.Patience, "the old process has ended")
	harness.CallIo(t.Context(), harness.Dial(t, m.Addr), "after", 0).WantOK(t)
	be("")
	m.Upgrade()
	m.End()
}

// SIGTERM wins: to the old process before the new one has taken over it ends
// both, to the new one it ends that alone.
func TestUpgradeAndStop(t *testing.T) {
	for _, wait := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond} {
		t.Run(fmt.Sprintf("the old, after %v", wait), func(t *testing.T) {
			m, l, be := startMoody(t)
			be("sleep 5")
			next := m.StartUpgrade()
			<-time.After(wait)
			m.SignalTo(m.Main, syscall.SIGTERM)
			m.WantEnd(m.Main, 0)
			m.WantGone(next)
			m.WantNothingLeft()
			for _, o := range harness.Failures(l.Stop()) {
				message := status.Convert(o.Err).Message()
				testkit.Want(t, !strings.HasPrefix(message, "cabrank: "), "call %s: %s", o.ID, message)
			}
		})
		t.Run(fmt.Sprintf("the new, after %v", wait), func(t *testing.T) {
			m, l, be := startMoody(t)
			be("sleep 5")
			next := m.StartUpgrade()
			<-time.After(wait)
			m.SignalTo(next, syscall.SIGTERM)
			m.WantGone(next)
			m.WaitLog(harness.Patience, "no upgrade, nothing has changed")
			m.WantUnharmed(l)
			l.Stop()
		})
	}
}

// After an upgrade the new workers are at spare ports, since the old ones have their
// own. The next replacement brings each place home, and its metrics page with it.
func TestPortsComeHomeAfterAnUpgrade(t *testing.T) {
	start := testkit.FreePorts(t, 8)
	c := harness.StartControlled(t, harness.FaultWorker(t, "-metrics"), "--workers", "2", "--transport", "tcp", "--start-port", strconv.Itoa(start)).AwaitReady(2)
	old := c.Status().PID
	c.Must("upgrade")
	c.Await("the end of the old process", func(s *harness.OperatorStatus) bool {
		return s.PID != old && syscall.Kill(old, 0) != nil && s.Ready == 2
	})
	c.Must("restart")
	for _, w := range c.Status().Workers {
		number, _ := strconv.Atoi(strings.TrimPrefix(w.Name, "worker-"))
		want := "127.0.0.1:" + strconv.Itoa(start+number-1)
		testkit.Want(t, w.Address == want, "%s is at %s, want %s", w.Name, w.Address, want)
	}
	c.Ended = true
	c.Must("stop")
	c.WaitNoneLeft(harness.Patience)
}

// The old workers' ports are theirs also while these still boot: the new ones begin
// elsewhere, and none is killed because its address is taken.
func TestUpgradeWhileWorkersBoot(t *testing.T) {
	start := testkit.FreePorts(t, 8)
	c := harness.StartControlled(t, harness.FaultWorker(t, "-boot", "1s"), "--workers", "2", "--transport", "tcp", "--start-port", strconv.Itoa(start))
	c.Await("two processes", func(s *harness.OperatorStatus) bool {
		return len(s.Workers) == 2 && s.Workers[0].PID != 0 && s.Workers[1].PID != 0
	})
	old := c.Status().PID
	c.Must("upgrade")
	c.Await("the end of the old process", func(s *harness.OperatorStatus) bool {
		return s.PID != old && syscall.Kill(old, 0) != nil && s.Ready == 2
	})
	if n := len(c.LogLines("worker ended")); n > 0 {
		t.Errorf("%d workers have ended: %v", n, c.LogLines("worker ended"))
	}
	c.Ended = true
	c.Must("stop")
	c.WaitNoneLeft(harness.Patience)
}
