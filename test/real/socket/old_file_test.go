//go:build real || soak

package socket_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/oldjuggler"
	"github.com/cabrank/cabrank/test/real/harness"
)

// oldFile writes a file as the old server had it, for a port of this machine.
func oldFile(t *testing.T, calls, events *redisd.Server) (file, address string) {
	t.Helper()
	address = testkit.FreeAddress(t)
	text := testkit.ReadFile(t, "testdata/juggler.yml")
	filled := strings.NewReplacer("ADDRESS", address, "CALLS", "unix://"+calls.Socket, "EVENTS", "unix://"+events.Socket).Replace(string(text))
	file = harness.WriteFile(t, "juggler.yml", filled)
	return file, address
}

// The file of an old server has ours at the same port and paths, with the same limits,
// origins and address to close, on the same Redis; what has no counterpart is said.
func TestServeOldFile(t *testing.T) {
	calls, events := redisd.Start(t), redisd.Start(t)
	startOldCallee(t, calls)
	file, address := oldFile(t, calls, events)
	p := harness.StartCLI(t, "socket", "serve", "--config", file, "--log-format", "text")
	p.WaitLog(harness.Patience, "listening")
	if log := p.Log(); !strings.Contains(log, "redis.caller.max_idle") || !strings.Contains(log, "server.handshake_timeout") {
		t.Errorf("nothing is said of keys without effect:\n%s", log)
	}
	for path, want := range map[string]string{"/ws": "403 ", "/chat": "403 ", "/other": "404 "} {
		if got := knock(t, address+path, "http://evil.example"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	dial := func(path string) *websocket.Conn {
		ws, _, err := dialSocket(t, "ws://"+address+path, oldjuggler.Protocol, http.Header{"Origin": {"https://shop.example"}})
		testkit.Must(t, err)
		t.Cleanup(func() { ws.Close() })
		return ws
	}
	ws := dial("/chat")
	for _, step := range []struct{ send, want string }{
		{call("test.echo", "x"), `"type":8`}, {"", `"args":"x"`}, // over the Redis of calls
		{`{"meta":{"type":3},"payload":{"channel":"c"}}`, `"type":8`},
		{call("test.nobody", "1"), `"type":8`}, {call("test.nobody", "2"), `"type":8`}, {call("test.nobody", "3"), "list capacity exceeded"},
	} {
		if got := request(t, ws, step.send); !strings.Contains(got, step.want) {
			t.Fatalf("%s: got %s; want %s", step.send, got, step.want)
		}
	}
	_, err := dialRedis(t, events).Do("PUBLISH", "c", `{"msg_uuid":"","args":"news"}`)
	testkit.Must(t, err)
	if got := request(t, ws, ""); !strings.Contains(got, `"news"`) {
		t.Fatalf("got %s", got)
	}
	for _, tc := range []struct {
		ws   *websocket.Conn
		text string
		code int
	}{
		{ws, call("bye", "x"), websocket.CloseNormalClosure},
		{dial("/ws"), call("test.echo", strings.Repeat("x", 5000)), websocket.CloseMessageTooBig}, // read_limit
	} {
		testkit.Must(t, tc.ws.WriteMessage(websocket.TextMessage, []byte(tc.text)))
		_, _, err = tc.ws.ReadMessage()
		testkit.Want(t, websocket.IsCloseError(err, tc.code), "%v, want %d", err, tc.code)
	}
}

// A flag, and a variable, come before the file; its addresses of Redis go together.
func TestServeOldFileAndFlags(t *testing.T) {
	calls, mine := redisd.Start(t), redisd.Start(t)
	startOldCallee(t, mine)
	file, _ := oldFile(t, calls, calls)
	p := harness.StartProcess(t, []string{"CABRANK_REDIS=unix://" + mine.Socket}, harness.CabrankBinary(t),
		"socket", "serve", "--listen", "127.0.0.1:0", "--origin", "none", "--config", file)
	c := harness.Cabrank{Process: p}
	client := dialOld(t, "ws://"+c.Listening("listening")+"/chat")
	subscribed := dialRedis(t, mine)
	client.Sub("c", false)
	testkit.Eventually(t, harness.Patience, "the subscription", func() bool {
		answer, _ := subscribed.Do("PUBSUB", "NUMSUB", "c")
		return strings.Contains(fmt.Sprint(answer), " 1]")
	})
}

func call(uri, args string) string {
	return fmt.Sprintf(`{"meta":{"type":1},"payload":{"uri":%q,"args":%q,"timeout":5000000000}}`, uri, args)
}
