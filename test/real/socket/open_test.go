//go:build real || soak

package socket_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/exchange"
	"github.com/cabrank/cabrank/test/real/harness"
)

// dialSocket opens a socket, or returns by what it was refused. One of juggler.1 has had
// its welcome.
func dialSocket(t testing.TB, url, protocol string, header http.Header, more ...func(*websocket.Dialer)) (ws *websocket.Conn, refusal string, err error) {
	t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{protocol}, ReadBufferSize: 512, WriteBufferSize: 512}
	for _, set := range more {
		set(&dialer)
	}
	ws, response, err := dialer.DialContext(t.Context(), url, header)
	if response != nil {
		said, _ := io.ReadAll(response.Body)
		response.Body.Close()
		refusal = response.Status + " " + string(said)
	}
	if err == nil && strings.HasPrefix(protocol, socket.Protocol1) {
		_, _, err = ws.ReadMessage()
	}
	return ws, refusal, err
}

// open opens a socket, which ends with the test.
func open(t testing.TB, url, protocol string, more ...func(*websocket.Dialer)) *websocket.Conn {
	t.Helper()
	ws, _, err := dialSocket(t, url, protocol, nil, more...)
	testkit.Must(t, err)
	t.Cleanup(func() { ws.Close() })
	return ws
}

// openMany opens sockets by a few at a time, and has them closed in the end.
func openMany(t testing.TB, url, protocol string, n int) []*websocket.Conn {
	t.Helper()
	const atOnce = 8
	all, errs := make([]*websocket.Conn, n), make([]error, atOnce)
	t.Cleanup(func() {
		for _, ws := range all {
			if ws != nil {
				ws.Close()
			}
		}
	})
	var dialing sync.WaitGroup
	for part := range atOnce {
		dialing.Go(func() {
			for i := part; i < n && errs[part] == nil; i += atOnce {
				all[i], _, errs[part] = dialSocket(t, url, protocol, nil)
			}
		})
	}
	dialing.Wait()
	testkit.Must(t, errors.Join(errs...))
	return all
}

// join has sockets of juggler.0 subscribe, each to one of so many channels: c0, c1 and so on.
func join(t testing.TB, sockets []*websocket.Conn, channels int) []*websocket.Conn {
	t.Helper()
	for i, ws := range sockets {
		request(t, ws, fmt.Sprintf(`{"meta":{"type":3},"payload":{"channel":"c%d"}}`, i%channels))
	}
	return sockets
}

// joinChannel opens a socket that has subscribed.
func joinChannel(t testing.TB, url, protocol, channel string) *websocket.Conn {
	t.Helper()
	ws, sub := open(t, url, protocol), `{"meta":{"type":3},"payload":{"channel":"`+channel+`"}}`
	if protocol == socket.Protocol1 {
		sub = `{"type":"sub","id":1,"channel":"` + channel + `"}`
	}
	request(t, ws, sub)
	return ws
}

// request sends a message, if it is not empty, and returns what comes.
func request(t testing.TB, ws *websocket.Conn, text string) string {
	t.Helper()
	if text != "" {
		testkit.Must(t, ws.WriteMessage(websocket.TextMessage, []byte(text)))
	}
	testkit.Must(t, ws.SetReadDeadline(time.Now().Add(harness.Patience)))
	_, answer, err := ws.ReadMessage()
	testkit.Must(t, err)
	testkit.Must(t, ws.SetReadDeadline(time.Time{}))
	return strings.TrimSpace(string(answer))
}

// wantExchange holds a server to lines as those of package exchange.
func wantExchange(t *testing.T, url, lines string) {
	t.Helper()
	cases, err := exchange.Parse("here.txt", "== exchange\n"+lines)
	testkit.Must(t, err)
	exchange.Run(t, cases[0], exchange.Target{Kind: "new", Start: func(*testing.T, exchange.Options) (string, func()) { return url, nil }})
}

// ends has a command of sockets end by itself: with a code, and a line that has no secret.
func ends(t testing.TB, env []string, code int, want string, args ...string) {
	t.Helper()
	p := harness.StartProcess(t, env, harness.CabrankBinary(t), append([]string{"socket"}, args...)...)
	if got := p.ExitCode(harness.Patience); got != code || !strings.Contains(p.Log(), want) || strings.Contains(p.Log(), "secret") || strings.Count(p.Log(), "\n") != 1 {
		t.Errorf("%v %v: exit code %d:\n%s", env, args, got, p.Log())
	}
}
