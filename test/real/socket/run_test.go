//go:build real || soak

package socket_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
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

// knock asks for a socket, and returns the status of the answer.
func knock(t testing.TB, address string) (*peer, int) {
	t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{oldjuggler.Protocol}}
	ws, response, err := dialer.Dial("ws://"+address+"/ws", nil)
	if response == nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if err != nil {
		return nil, response.StatusCode
	}
	t.Cleanup(func() { ws.Close() })
	return &peer{t, ws}, response.StatusCode
}

func dial(t testing.TB, address string) *peer {
	t.Helper()
	p, status := knock(t, address)
	if p == nil {
		t.Fatalf("no socket: status %d", status)
	}
	return p
}

func (p *peer) send(kind int, payload string) {
	p.t.Helper()
	text := fmt.Sprintf(`{"meta":{"type":%d},"payload":%s}`, kind, payload)
	testkit.Must(p.t, p.ws.WriteMessage(websocket.TextMessage, []byte(text)))
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
	if err != nil || !strings.Contains(message, fmt.Sprintf(`"type":%d`, kind)) || !strings.Contains(message, text) {
		p.t.Fatalf("got %s, %v; want %d with %s", message, err, kind, text)
	}
}

// wantLeave takes the close frame with which a server goes away.
func (p *peer) wantLeave() {
	p.t.Helper()
	if message, err := p.read(); !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		p.t.Fatalf("got %s, %v; want 1001", message, err)
	}
}

// withRedis is a cabrank with a worker for calls, and an old callee for sockets.
func withRedis(t *testing.T, flags ...string) (env, args []string) {
	t.Helper()
	redis := redisd.Start(t)
	startOldCallee(t, redis)
	args = slices.Concat([]string{"--socket-path", "/ws", "--workers", "1", "--transport", "unix"}, flags, []string{"--"}, harness.FaultWorker(t))
	return []string{"CABRANK_REDIS=unix://" + redis.Socket}, args
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
	idle.send(3, `{"channel":"c"}`)
	idle.want(8, "")
	busy.send(2, `{"channel":"c","args":{"a":1}}`)
	busy.want(8, "")
	idle.want(10, `{"a":1}`)
	calls.WaitAnswered(t, "", 100)
	c.WaitMetric("cabrank_sockets", 2)
	c.WaitMetric("cabrank_connections", 3)
	busy.send(1, `{"uri":"test.delay","args":"1500"}`)
	busy.want(8, "test.delay")
	last := make(chan harness.Outcome, 1) // a call that runs while cabrank stops
	go func() { last <- harness.CallIo(t.Context(), harness.Dial(t, c.Addr), "last", time.Second) }()
	c.WaitTaken(len(calls.Stop()) + 1)
	c.Ended = true
	c.Signal(syscall.SIGTERM)
	idle.wantLeave()
	busy.want(9, "1500")
	busy.wantLeave()
	wantNoFailure(t, append(calls.Outcomes(), <-last))
	if code := c.ExitCode(harness.Patience); code != 0 || len(c.LogLines("calls were cut")) > 0 {
		t.Errorf("exit code %d", code)
	}
}

// A call of a socket that does not end in time is cut, and counted.
func TestOnePortCuts(t *testing.T) {
	env, args := withRedis(t, "--drain-timeout", "300ms")
	c := harness.StartCabrankEnv(t, env, args...)
	p := dial(t, c.Addr)
	p.send(1, `{"uri":"test.delay","args":"2500"}`)
	p.want(8, "test.delay")
	c.Ended = true
	c.Signal(syscall.SIGTERM)
	p.wantLeave()
	c.WantExit(harness.Patience, 0)
	if cut := c.LogLines("calls were cut"); len(cut) != 1 || cut[0].Text("calls") != "1" {
		t.Errorf("told %v", cut)
	}
}

// Through an upgrade no call is lost; the old process has its sockets leave when they
// wait for nothing, and the new one takes those that come.
func TestUpgradeWithSockets(t *testing.T) {
	env, args := withRedis(t)
	m := harness.StartManaged(t, env, nil, args...)
	m.WaitReady(harness.Patience)
	calls := harness.StartLoad(t, m.Addr, 3, 2*time.Millisecond)
	idle, busy := dial(t, m.Addr), dial(t, m.Addr)
	busy.send(1, `{"uri":"test.delay","args":"2000"}`)
	busy.want(8, "test.delay")
	m.UpgradeBy(func() {
		m.SignalTo(m.Main, syscall.SIGUSR2)
		idle.wantLeave()
		next := dial(t, m.Addr)
		next.send(1, `{"uri":"test.reverse","args":"abc"}`)
		next.want(8, "")
		next.want(9, "cba")
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
	if _, status := knock(t, c.Addr); status != http.StatusServiceUnavailable {
		t.Errorf("one more: status %d", status)
	}
	c.WaitMetric("cabrank_connections", own)
	harness.CallIo(t.Context(), harness.Dial(t, c.Addr), "call", time.Millisecond).WantOK(t)
	open[0].ws.Close()
	c.WaitMetric("cabrank_sockets", own-1)
	dial(t, c.Addr)
	open[1].ws.Close()
	c.WaitMetric("cabrank_sockets", own-1)
	configure("https://shop.example")
	c.Signal(syscall.SIGHUP)
	testkit.Eventually(t, harness.Patience, "the origin to be refused", func() bool {
		p, status := knock(t, c.Addr)
		if p != nil {
			p.ws.Close()
		}
		return status == http.StatusForbidden
	})
	c.Stop()
}

// A handshake that does not come to its end ends in 5 s, and a path
// without sockets says what is missing.
func TestHalfHandshakes(t *testing.T) {
	c := harness.StartCabrank(t, slices.Concat([]string{"--socket-path", "/ws", "--workers", "1", "--transport", "unix", "--"}, harness.FaultWorker(t))...)
	for _, half := range []string{"", "GET /ws HTTP/1.1\r\n", "GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n"} {
		conn, err := net.Dial("tcp", c.Addr)
		testkit.Must(t, err)
		if _, err := io.WriteString(conn, half); err != nil {
			t.Fatal(err)
		}
		testkit.Must(t, conn.SetReadDeadline(time.Now().Add(harness.Patience)))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q has not ended", half)
		}
		conn.Close()
	}
	dialer := websocket.Dialer{Subprotocols: []string{oldjuggler.Protocol}}
	_, response, err := dialer.Dial("ws://"+c.Addr+"/chat", nil)
	if err == nil || response == nil {
		t.Fatalf("a path without sockets: %v", err)
	}
	defer response.Body.Close()
	if text, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusNotFound || !strings.Contains(string(text), "socket.path") {
		t.Errorf("a path without sockets: %s %s", response.Status, text)
	}
	c.WaitMetric("cabrank_connections", 0)
	c.Stop()
}

// A call of a socket to a worker ends like others when cabrank stops, or is upgraded: its
// socket gets the result, and leaves. One that takes too long is cut, and counted once.
func TestStopsWithCallsToWorkers(t *testing.T) {
	env, flags := workDescriptors(t), []string{"--socket-path", "/ws", "--workers", "1", "--transport", "unix"}
	t.Run("stop", func(t *testing.T) {
		c := harness.StartCabrankEnv(t, env, slices.Concat(flags, []string{"--"}, harness.FaultWorker(t))...)
		c.WaitReady(harness.Patience)
		p := dial(t, c.Addr)
		p.callMethod(1, workService+"Io", `{"millis":700}`, harness.CallBound)
		p.want(8, "")
		c.Ended = true
		c.Signal(syscall.SIGTERM)
		p.want(9, `"worker":`)
		p.wantLeave()
		if code := c.ExitCode(harness.Patience); code != 0 || len(c.LogLines("calls were cut")) > 0 {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("cut", func(t *testing.T) {
		c := harness.StartCabrankEnv(t, env, slices.Concat(flags, []string{"--drain-timeout", "300ms", "--"}, harness.FaultWorker(t))...)
		c.WaitReady(harness.Patience)
		p := dial(t, c.Addr)
		p.callMethod(1, workService+"Io", `{"millis":20000}`, harness.CallBound)
		p.want(8, "")
		c.Ended = true
		c.Signal(syscall.SIGTERM)
		if message, err := p.read(); err == nil { // the worker's end, or the socket's, comes first
			t.Logf("got %s", message)
			p.wantLeave()
		} else if !websocket.IsCloseError(err, websocket.CloseGoingAway) {
			t.Errorf("got %v", err)
		}
		c.ExitCode(harness.Patience)
		if cut := c.LogLines("calls were cut"); len(cut) != 1 || cut[0].Text("calls") != "1" {
			t.Errorf("told %v", cut)
		}
	})
	t.Run("upgrade", func(t *testing.T) {
		m := harness.StartManaged(t, env, nil, slices.Concat(flags, []string{"--"}, harness.FaultWorker(t))...)
		m.WaitReady(harness.Patience)
		p := dial(t, m.Addr)
		m.UpgradeBy(func() {
			p.callMethod(1, workService+"Io", `{"millis":2500}`, harness.CallBound)
			p.want(8, "")
			m.SignalTo(m.Main, syscall.SIGUSR2)
			p.want(9, `"worker":`)
			p.wantLeave()
		})
		m.End()
	})
}
