//go:build soak

package socket_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A hundred sockets subscribe to a thousand names of 1 KB each: what the process grows by
// is within its budget, beside what a socket takes, and what finds no room is refused.
func TestSubscriptionsAreBoundedSoak(t *testing.T) {
	const sockets, names, budgetKiB, socketKiB = 100, 1000, 64 << 10, 64
	c, url := startServe(t)
	before := harness.RSSKiB(t, c.PID)
	var subscribed, refused atomic.Int64
	var asking sync.WaitGroup
	for s := range sockets {
		ws := open(t, url, socket.Protocol1)
		asking.Go(func() {
			for n := range names {
				text := fmt.Sprintf(`{"type":"sub","id":%d,"channel":"%d.%d.%s"}`, n, s, n, strings.Repeat("x", 1000))
				err := ws.WriteMessage(websocket.TextMessage, []byte(text))
				var answer []byte
				if err == nil {
					_, answer, err = ws.ReadMessage()
				}
				switch {
				case err != nil:
					t.Error(err)
					return
				case strings.Contains(string(answer), `"type":"ack"`):
					subscribed.Add(1)
				case strings.Contains(string(answer), `"code":429`):
					refused.Add(1)
				default:
					t.Errorf("got %s", answer)
				}
			}
		})
	}
	asking.Wait()
	grown := harness.RSSKiB(t, c.PID) - before
	t.Logf("%d KiB of names were sent, %d subscribed, %d refused: the process grew by %d KiB", sockets*names, subscribed.Load(), refused.Load(), grown)
	testkit.Want(t, grown <= budgetKiB+sockets*socketKiB && subscribed.Load() >= 5_000 && subscribed.Load()+refused.Load() == sockets*names,
		"that is not within the budget, or too little of it")
}
