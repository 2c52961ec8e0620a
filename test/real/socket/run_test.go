//go:build real || soak

package socket_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/oldjuggler"
	"github.com/cabrank/cabrank/test/real/harness"
)

// peer is one WebSocket to a cabrank.
type peer struct {
	t  testing.TB
	ws *websocket.Conn
}

func dial(t testing.TB, address string) *peer {
	t.Helper()
	return &peer{t, open(t, "ws://"+address+"/ws", oldjuggler.Protocol)}
}

// knock asks for a socket from an origin, and returns how it was refused: by a status and a
// text.
func knock(t testing.TB, address, origin string) string {
	t.Helper()
	header := http.Header{}
	if origin != "" {
		header.Set("Origin", origin)
	}
	ws, refusal, err := dialSocket(t, "ws://"+address, oldjuggler.Protocol, header)
	if err == nil {
		ws.Close()
	}
	return refusal
}

func (p *peer) send(kind int, payload string) *peer {
	p.t.Helper()
	text := fmt.Sprintf(`{"meta":{"type":%d},"payload":%s}`, kind, payload)
	testkit.Must(p.t, p.ws.WriteMessage(websocket.TextMessage, []byte(text)))
	return p
}

// read takes what comes next.
func (p *peer) read() (message string, err error) {
	p.t.Helper()
	testkit.Must(p.t, p.ws.SetReadDeadline(time.Now().Add(harness.Patience)))
	_, bytes, err := p.ws.ReadMessage()
	return string(bytes), err
}

// want takes a message of a kind that has such a text.
func (p *peer) want(kind int, text string) {
	p.t.Helper()
	message, err := p.read()
	testkit.Need(p.t, err == nil && strings.Contains(message, fmt.Sprintf(`"type":%d`, kind)) && strings.Contains(message, text),
		"got %s, %v; want %d with %s", message, err, kind, text)
}

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

// wantCall makes a call that is taken, and has such a text in its result.
func (p *peer) wantCall(uri, args, result string) {
	p.t.Helper()
	p.callMethod(1, uri, args, harness.CallBound).want(8, "")
	p.want(9, result)
}

// wantLeave takes the close frame with which a server goes away.
func (p *peer) wantLeave() {
	p.t.Helper()
	message, err := p.read()
	testkit.Need(p.t, websocket.IsCloseError(err, websocket.CloseGoingAway), "got %s, %v; want 1001", message, err)
}

// withRedis is a cabrank with a worker for calls, and an old callee for sockets.
func withRedis(t *testing.T, flags ...string) (env, args []string) {
	t.Helper()
	redis := redisd.Start(t)
	startOldCallee(t, redis)
	return []string{"CABRANK_REDIS=unix://" + redis.Socket}, withSockets(t, flags...)
}

// withSockets are the flags of a cabrank with sockets beside a worker.
func withSockets(t testing.TB, flags ...string) []string {
	t.Helper()
	return slices.Concat([]string{"--socket-path", "/ws", "--workers", "1", "--transport", "unix"}, flags, []string{"--"}, harness.FaultWorker(t))
}

func wantNoFailure(t *testing.T, outcomes []harness.Outcome) {
	t.Helper()
	for _, o := range harness.Failures(outcomes) {
		t.Errorf("call %s: %v", o.ID, o.Err)
	}
}

// Calls and sockets come in by one port at the same time, and have one page of metrics.
// A stop while both are busy loses no call of either: a socket without one is told to
// leave, one with a call gets its result first.
func TestOnePort(t *testing.T) {
	env, args := withRedis(t)
	c := harness.StartCabrankEnv(t, env, args...)
	c.WaitReady(harness.Patience)
	calls := harness.StartLoad(t, c.Addr, 3, 2*time.Millisecond)
	idle, busy := dial(t, c.Addr), dial(t, c.Addr)
	idle.send(3, `{"channel":"c"}`).want(8, "")
	busy.send(2, `{"channel":"c","args":{"a":1}}`).want(8, "")
	idle.want(10, `{"a":1}`)
	calls.WaitAnswered(t, "", 100)
	c.WaitMetric("cabrank_sockets", 2)
	c.WaitMetric("cabrank_connections", 3)
	busy.send(1, `{"uri":"test.delay","args":"1500"}`).want(8, "test.delay")
	last := make(chan harness.Outcome, 1) // a call that runs while cabrank stops
	go func() { last <- harness.CallIo(t.Context(), harness.Dial(t, c.Addr), "last", time.Second) }()
	c.WaitTaken(len(calls.Stop()) + 1)
	c.Ended = true
	c.Signal(syscall.SIGTERM)
	idle.wantLeave()
	busy.want(9, "1500")
	busy.wantLeave()
	wantNoFailure(t, append(calls.Outcomes(), <-last))
	code := c.ExitCode(harness.Patience)
	testkit.Want(t, code == 0 && len(c.LogLines("calls were cut")) == 0, "exit code %d", code)
}

// Through an upgrade no call is lost; the old process has its sockets leave when they
// wait for nothing, and the new one takes those that come.
func TestUpgradeWithSockets(t *testing.T) {
	env, args := withRedis(t)
	m := harness.StartManaged(t, env, nil, args...)
	m.WaitReady(harness.Patience)
	calls := harness.StartLoad(t, m.Addr, 3, 2*time.Millisecond)
	idle, busy := dial(t, m.Addr), dial(t, m.Addr)
	busy.send(1, `{"uri":"test.delay","args":"2000"}`).want(8, "test.delay")
	m.UpgradeBy(func() {
		m.SignalTo(m.Main, syscall.SIGUSR2)
		idle.wantLeave()
		dial(t, m.Addr).wantCall("test.reverse", `"abc"`, "cba")
		busy.want(9, "2000")
		busy.wantLeave()
	})
	calls.WaitAnswered(t, "", 20)
	wantNoFailure(t, calls.Stop())
	m.End()
}

// Sockets count as connections and have three quarters of them, of which one address may
// have seven times as many as it leaves; calls find room beside them. One that goes makes
// room for another. Another origin is taken by a reload.
func TestSocketsBesideCalls(t *testing.T) {
	const most, own = 16, 11
	file := t.TempDir() + "/cabrank.yml"
	configure := func(origin string) {
		t.Helper()
		text := fmt.Sprintf("socket: {path: [/ws], origin: %s}\nlimits: {connections: %d}\n", origin, most)
		testkit.Must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	configure("host")
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "1", "--drain-timeout", "500ms", "--config", file)
	c.WaitReady(harness.Patience)
	var open []*peer
	for range own {
		open = append(open, dial(t, c.Addr))
	}
	if got := knock(t, c.Addr+"/ws", ""); !strings.HasPrefix(got, "503 ") {
		t.Errorf("one more: %s", got)
	}
	c.WaitMetric("cabrank_connections", own)
	if got := harness.CallIo(t.Context(), harness.Dial(t, c.Addr), "call", time.Millisecond); got.Err != nil {
		t.Errorf("a call beside them: %v", got.Err)
	}
	open[0].ws.Close()
	c.WaitMetric("cabrank_sockets", own-1)
	dial(t, c.Addr)
	open[1].ws.Close()
	c.WaitMetric("cabrank_sockets", own-1)
	configure("https://shop.example")
	c.Signal(syscall.SIGHUP)
	testkit.Eventually(t, harness.Patience, "the origin to be refused", func() bool { return strings.HasPrefix(knock(t, c.Addr+"/ws", ""), "403 ") })
}

// A handshake that does not come to its end ends in 5 s, and a path
// without sockets says what is missing.
func TestHalfHandshakes(t *testing.T) {
	c := harness.StartCabrank(t, withSockets(t)...)
	endsHalves(t, c.Addr, "", "GET /ws HTTP/1.1\r\n", "GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n")
	got := knock(t, c.Addr+"/chat", "")
	testkit.Want(t, strings.HasPrefix(got, "404 ") && strings.Contains(got, "socket.path"), "a path without sockets: %s", got)
	c.WaitMetric("cabrank_connections", 0)
}

// A call of a socket to a worker ends like others when cabrank stops, or is upgraded: its
// socket gets the result, and leaves. One that takes too long is cut, and counted once.
func TestStopsWithCallsToWorkers(t *testing.T) {
	for name, tc := range map[string]struct {
		args, drain string
		results     int64
	}{
		"stop": {`{"millis":700}`, "20s", 1},
		"cut":  {`{"millis":20000}`, "300ms", 0},
	} {
		t.Run(name, func(t *testing.T) {
			code := stopsWithCall(t, workDescriptors(t), withSockets(t, "--drain-timeout", tc.drain), workService+"Io", tc.args, tc.results)
			testkit.Want(t, code == 0 || name == "cut", "exit code %d", code)
		})
	}
	t.Run("upgrade", func(t *testing.T) {
		m := harness.StartManaged(t, workDescriptors(t), nil, withSockets(t)...)
		m.WaitReady(harness.Patience)
		p := dial(t, m.Addr)
		m.UpgradeBy(func() {
			p.callMethod(1, workService+"Io", `{"millis":2500}`, harness.CallBound).want(8, "")
			m.SignalTo(m.Main, syscall.SIGUSR2)
			p.want(9, `"worker":`)
			p.wantLeave()
		})
		m.End()
	})
}

// A call over Redis is cut like one to a worker.
func TestCallOverRedisIsCut(t *testing.T) {
	env, args := withRedis(t, "--drain-timeout", "300ms")
	testkit.Equal(t, stopsWithCall(t, env, args, "test.delay", `"2500"`, 0), 0, "exit code")
}

// stopsWithCall stops cabrank while a socket has a call, which has so many results, and
// returns its exit code.
func stopsWithCall(t *testing.T, env, flags []string, uri, args string, want int64) (code int) {
	t.Helper()
	c := harness.StartCabrankEnv(t, env, flags...)
	c.WaitReady(harness.Patience)
	p := dial(t, c.Addr)
	p.callMethod(1, uri, args, harness.CallBound).want(8, "")
	c.Ended = true
	c.Signal(syscall.SIGTERM)
	var results atomic.Int64 // what is cut may be told as an error of the worker
	err := p.untilEnd(map[string]*atomic.Int64{`"worker":`: &results})
	testkit.Want(t, websocket.IsCloseError(err, websocket.CloseGoingAway) && results.Load() == want, "%d results, %v", results.Load(), err)
	code = c.ExitCode(harness.Patience)
	lines := c.LogLines("calls were cut")
	if want+int64(len(lines)) != 1 || want == 0 && lines[0].Text("calls") != "1" {
		t.Errorf("told %v", lines)
	}
	return code
}
