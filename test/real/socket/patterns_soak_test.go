//go:build soak

package socket_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
)

// One socket subscribes to a thousand patterns that take Redis as long as can be, and
// publishes where they are compared to their ends: others hardly wait, with Redis and without.
func TestSlowPatternsSoak(t *testing.T) {
	for name, tc := range map[string]struct {
		redis   bool
		letters int
	}{
		"redis, long": {true, 511}, "redis, as long as they may be": {true, 250}, "memory": {false, 250},
	} {
		t.Run(name, func(t *testing.T) {
			var flags []string
			if tc.redis {
				flags = []string{"--redis", "unix://" + redisd.Start(t).Socket}
			}
			_, url := startServe(t, flags...)
			good, bad := open(t, url, socket.Protocol1), open(t, url, socket.Protocol1)
			request(t, good, `{"type":"sub","id":1,"channel":"chat"}`)
			calm := publishChat(t, good)
			for i := range 1000 {
				request(t, bad, fmt.Sprintf(`{"type":"sub","id":%d,"pattern":"*%s%03d*"}`, i, strings.Repeat("a", tc.letters), i))
			}
			for range 10 {
				text := fmt.Sprintf(`{"type":"pub","channel":%q,"args":1}`, strings.Repeat("a", 1024))
				testkit.Must(t, bad.WriteMessage(websocket.TextMessage, []byte(text)))
			}
			var worst time.Duration
			for range 20 {
				worst = max(worst, publishChat(t, good))
			}
			t.Logf("an event takes %v, beside the patterns %v at most", calm, worst)
			testkit.Want(t, worst <= calm+time.Second, "others have waited for them")
		})
	}
}

// publishChat returns how long an event takes to come to its own sender, and to be
// acknowledged.
func publishChat(t *testing.T, ws *websocket.Conn) time.Duration {
	t.Helper()
	began := time.Now()
	request(t, ws, `{"type":"pub","id":2,"channel":"chat","args":"hi"}`)
	request(t, ws, "")
	return time.Since(began)
}
