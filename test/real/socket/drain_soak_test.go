//go:build soak

package socket_test

import (
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// At the end of a drain sockets with calls that have not ended are told so, every one,
// whoever has the calls.
func TestSocketsAreToldAtTheEndSoak(t *testing.T) {
	const sockets = 40
	for name, drain := range map[string]string{"in time": "1s", "at once": "0s"} {
		methods := drain == "1s"
		t.Run(name, func(t *testing.T) {
			env, args := withRedis(t, "--slots", "64", "--drain-timeout", drain)
			c := harness.StartCabrankEnv(t, append(env, workDescriptors(t)...), args...)
			c.WaitReady(harness.Patience)
			var peers []*peer
			for i := range sockets {
				p := dial(t, c.Addr)
				if methods && i%8 == 0 {
					p.callMethod(1, workService+"Io", `{"millis":20000}`, harness.CallBound)
				} else {
					p.send(1, `{"uri":"test.delay","args":"3000"}`)
				}
				p.want(8, "")
				peers = append(peers, p)
			}
			c.Ended = true
			c.Signal(syscall.SIGTERM)
			var reading sync.WaitGroup
			for _, p := range peers {
				reading.Go(func() {
					err := p.untilEnd(nil)
					testkit.Want(t, websocket.IsCloseError(err, websocket.CloseGoingAway), "a socket has ended by %v", err)
				})
			}
			reading.Wait()
			c.ExitCode(harness.Patience)
		})
	}
}

// An upgrade refuses no call of a socket that was not told to leave yet.
func TestUpgradeServesSocketsThatStaySoak(t *testing.T) {
	const sockets = 8
	m := harness.StartManaged(t, workDescriptors(t), nil, withSockets(t, "--slots", "16", "--drain-timeout", "6s")...)
	m.WaitReady(harness.Patience)
	var refused, answered atomic.Int64
	var running sync.WaitGroup
	m.UpgradeBy(func() {
		for range sockets {
			p := dial(t, m.Addr)
			gone := make(chan struct{})
			running.Go(func() {
				defer close(gone)
				err := p.untilEnd(map[string]*atomic.Int64{`"type":7`: &refused, `"type":9`: &answered})
				testkit.Want(t, websocket.IsCloseError(err, websocket.CloseGoingAway), "a socket has ended by %v", err)
			})
			running.Go(func() {
				ticker := time.NewTicker(50 * time.Millisecond)
				defer ticker.Stop()
				for {
					select {
					case <-gone:
						return
					case <-ticker.C:
					}
					call := `{"meta":{"type":1},"payload":{"uri":"` + workService + `Io","args":{"millis":5},"timeout":10000000000}}`
					_ = p.ws.WriteMessage(websocket.TextMessage, []byte(call)) // it has left, maybe
				}
			})
		}
		m.SignalTo(m.Main, syscall.SIGUSR2)
		running.Wait()
	})
	m.End()
	t.Logf("%d answered, %d refused", answered.Load(), refused.Load())
	testkit.Want(t, refused.Load() == 0 && answered.Load() != 0, "calls were refused")
}
