//go:build real && linux

package real_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/testkit"
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
	next := m.startUpgrade()
	<-time.After(wait) // the moment is what is tested
	m.kill(next)
	m.wantGone(next)
	if len(m.LogLines("handed over")) == 0 { // it is too late for that now
		m.WaitLog(patience, "no upgrade, nothing has changed")
		m.wantUnharmed(l)
		be("")
		m.upgrade() // it also sweeps what the killed one has left
		m.wantUnharmed(l)
		m.stop()
	} else {
		m.wantEnd(m.main, 0)
		m.wantNoProcess()
	}
	l.stop()
}

func killOld(t *testing.T, slow string, wait time.Duration) {
	t.Helper()
	m, l, be := startMoody(t, "--drain-timeout", "1s", "--stop-timeout", "500ms")
	be(slow)
	next, old := m.startUpgrade(), m.main
	<-time.After(wait)
	_ = syscall.Kill(old, syscall.SIGKILL) // it may have handed over and ended
	m.waitEnd(old)
	l.stop()
	if len(m.LogLines("took over")) == 0 && len(m.LogLines("handed over")) == 0 {
		// Either it had the listeners in its hands, or it ends.
		testkit.Eventually(t, patience, "the new process to end or to take over", func() bool {
			return len(m.LogLines("took over")) > 0 || lineWith(m.Output(), fmt.Sprintf("ended %d ", next)) != ""
		})
	}
	if lineWith(m.Output(), fmt.Sprintf("ended %d ", next)) != "" {
		m.wantNoProcess()
		return
	}
	m.main = next
	m.WaitLog(patience, "the old process has ended")
	if got := callIo(t.Context(), dialLang(t, m.Addr), "after", 0); got.err != nil {
		t.Errorf("a call after the takeover: %v", got.err)
	}
	be("")
	m.upgrade()
	m.stop()
}

// wantNoProcess is wantNothingLeft after a kill -9, which may leave files for
// the next start to sweep.
func (m *managed) wantNoProcess() {
	m.t.Helper()
	m.ExitCode(5 * time.Second)
	m.WaitNoneLeft(3 * time.Second)
}

// SIGTERM wins: to the old process before the new one has taken over it ends
// both, to the new one it ends that alone.
func TestUpgradeAndStop(t *testing.T) {
	for _, wait := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond} {
		t.Run(fmt.Sprintf("the old, after %v", wait), func(t *testing.T) {
			m, l, be := startMoody(t)
			be("sleep 1")
			next := m.startUpgrade()
			<-time.After(wait)
			m.signal(m.main, syscall.SIGTERM)
			m.wantEnd(m.main, 0)
			m.wantGone(next)
			m.wantNothingLeft()
			for _, o := range failures(l.stop()) {
				if message := status.Convert(o.err).Message(); strings.HasPrefix(message, "cabrank: ") {
					t.Errorf("call %s: %s", o.id, message)
				}
			}
		})
		t.Run(fmt.Sprintf("the new, after %v", wait), func(t *testing.T) {
			m, l, be := startMoody(t)
			be("sleep 1")
			next := m.startUpgrade()
			<-time.After(wait)
			m.signal(next, syscall.SIGTERM)
			m.wantGone(next)
			m.WaitLog(patience, "no upgrade, nothing has changed")
			m.wantUnharmed(l)
			l.stop()
		})
	}
}
