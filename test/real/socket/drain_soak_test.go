//go:build soak

package socket_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/test/real/harness"
)

// untilEnd counts what a socket is told by a text in it, and returns how it has ended.
func (p *peer) untilEnd(texts map[string]*atomic.Int64) error {
	for {
		message, err := p.read()
		if err != nil {
			return err
		}
		for text, n := range texts {
			if strings.Contains(message, text) {
				n.Add(1)
			}
		}
	}
}

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
					if err := p.untilEnd(nil); !websocket.IsCloseError(err, websocket.CloseGoingAway) {
						t.Errorf("a socket has ended by %v", err)
					}
				})
			}
			reading.Wait()
			c.ExitCode(harness.Patience)
		})
	}
}
