//go:build real || soak

package socket_test

import (
	"fmt"
	"net/http"
	"os"
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
	text, err := os.ReadFile("testdata/juggler.yml")
	testkit.Must(t, err)
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
	for path, want := range map[string]int{"/ws": 403, "/chat": 403, "/other": 404} {
		if got := status(t, address+path, "http://evil.example"); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	dialer := websocket.Dialer{Subprotocols: []string{oldjuggler.Protocol}}
	ws, response, err := dialer.Dial("ws://"+address+"/chat", http.Header{"Origin": {"https://shop.example"}})
	testkit.Must(t, err)
	response.Body.Close()
	defer ws.Close()
	for _, step := range []struct{ send, want string }{
		{call("test.echo", "x"), `"type":8`}, {"", `"args":"x"`}, // over the Redis of calls
		{`{"meta":{"type":3},"payload":{"channel":"c"}}`, `"type":8`},
		{call("test.nobody", "1"), `"type":8`}, {call("test.nobody", "2"), `"type":8`}, {call("test.nobody", "3"), "list capacity exceeded"},
	} {
		if step.send != "" {
			send(t, ws, step.send)
		}
		if _, got, err := ws.ReadMessage(); err != nil || !strings.Contains(string(got), step.want) {
			t.Fatalf("%s: got %s, %v; want %s", step.send, got, err, step.want)
		}
	}
	if _, err := dialRedis(t, events).Do("PUBLISH", "c", `{"msg_uuid":"","args":"news"}`); err != nil {
		t.Fatal(err)
	}
	if _, got, err := ws.ReadMessage(); err != nil || !strings.Contains(string(got), `"news"`) {
		t.Fatalf("got %s, %v", got, err)
	}
	send(t, ws, call("bye", "x"))
	if _, _, err := ws.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("close_uri: %v", err)
	}
	ws, response, err = dialer.Dial("ws://"+address+"/ws", http.Header{"Origin": {"https://shop.example"}})
	testkit.Must(t, err)
	response.Body.Close()
	defer ws.Close()
	send(t, ws, call("test.echo", strings.Repeat("x", 5000)))
	if _, _, err := ws.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseMessageTooBig) {
		t.Errorf("read_limit: %v", err)
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

func status(t *testing.T, url, origin string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+url, http.NoBody)
	testkit.Must(t, err)
	for name, value := range map[string]string{
		"Origin": origin, "Connection": "Upgrade", "Upgrade": "websocket",
		"Sec-Websocket-Version": "13", "Sec-Websocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
	} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	testkit.Must(t, err)
	response.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	return response.StatusCode
}

func call(uri, args string) string {
	return fmt.Sprintf(`{"meta":{"type":1},"payload":{"uri":%q,"args":%q,"timeout":5000000000}}`, uri, args)
}

func send(t *testing.T, ws *websocket.Conn, text string) {
	t.Helper()
	testkit.Must(t, ws.WriteMessage(websocket.TextMessage, []byte(text)))
}
