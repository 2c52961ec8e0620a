//go:build real

package real_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/demo/demopb"
	"github.com/cabrank/cabrank/internal/testkit"
)

// steadyPause is between two calls of a steady caller, so that it does not take
// the processor from what is tested.
const steadyPause = 5 * time.Millisecond

// 10,000 idle connections cost a bounded amount of memory each and hold no
// buffer, another caller never notices them, and nothing is left of them.
func TestIdleConnections(t *testing.T) {
	c := StartCabrank(t, "--workers", "1", "--slots", "20", "--",
		cabrankBinary(t), "demo", "worker", "--work", "1ms")
	c.WaitReady(patience)
	good := demopb.NewGreeterClient(dialLang(t, c.Addr))
	if err := greet(t, good); err != nil {
		t.Fatal(err)
	}
	kib, threads := rssKiB(t, c.PID), c.metric("go_goroutines")
	buffered, files := c.metric("cabrank_buffered_bytes"), c.metric("process_open_fds")

	caller := startSteady(t, good)
	idle := gather(t, c)
	n := len(idle.conns)
	caller.wantMore(100)
	testkit.Eventually(t, patience, "the crowd's buffers to come back", func() bool {
		return c.metric("cabrank_buffered_bytes") <= buffered
	})
	each := float64(rssKiB(t, c.PID)-kib) / float64(n)
	t.Logf("%d connections, %.1f KiB each", n, each)
	if each > mostIdle {
		t.Errorf("%.1f KiB for each connection, want at most %d", each, mostIdle)
	}

	idle.leave()
	caller.wantMore(100)
	caller.stop()
	testkit.Eventually(t, patience, "buffers, files and goroutines to be those of before", func() bool {
		return c.metric("cabrank_buffered_bytes") <= buffered && c.metric("process_open_fds") <= files+5 &&
			c.metric("go_goroutines") <= threads+5
	})
	served, all := c.metric("cabrank_calls_total", "code", "OK"), c.metric("cabrank_calls_total")
	if served != all || served < float64(n/2) {
		t.Errorf("%v of %v calls were served, want all, and one for every second connection of %d", served, all, n)
	}
	if ended := c.metric("cabrank_connections_ended_total"); ended != 0 {
		t.Errorf("cabrank ended %v connections itself", ended)
	}
	c.Stop()
	if n < crowdSize {
		t.Skipf("passed with %d connections only: the limit on open files does not allow %d", n, crowdSize)
	}
}

// steady is a caller that makes one call after the other; each that fails fails
// the test.
type steady struct {
	t       *testing.T
	served  atomic.Int64
	running sync.WaitGroup
	quit    func()
}

func startSteady(t *testing.T, greeter demopb.GreeterClient) *steady {
	t.Helper()
	stop := make(chan struct{})
	s := &steady{t: t, quit: sync.OnceFunc(func() { close(stop) })}
	s.running.Go(func() {
		pause := time.NewTicker(steadyPause)
		defer pause.Stop()
		for {
			select {
			case <-stop:
				return
			case <-pause.C:
			}
			if err := greet(t, greeter); err != nil {
				t.Errorf("after %d calls: %v", s.served.Load(), err)
				return
			}
			s.served.Add(1)
		}
	})
	t.Cleanup(s.stop)
	return s
}

// wantMore waits for so many calls more.
func (s *steady) wantMore(calls int64) {
	s.t.Helper()
	want := s.served.Load() + calls
	testkit.Eventually(s.t, patience, "calls beside the crowd", func() bool { return s.served.Load() >= want })
}

func (s *steady) stop() {
	s.quit()
	s.running.Wait()
}
