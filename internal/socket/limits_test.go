package socket

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/testkit"
)

var noBounds = broker.MemoryOptions{}

// What is above a limit of the socket is refused, and the socket goes on.
func TestLimitsOfASocket(t *testing.T) {
	url, _, _ := start(t, Options{MaxCalls: 2, MaxSubscriptions: 2, MaxName: 12}, noBounds)
	c := dial(t, url)
	c.send(callFrame("1", "test.nobody", time.Minute), callFrame("2", "test.nobody", 50*time.Millisecond), callFrame("3", "test.nobody", time.Minute))
	c.want("ack 1", "ack 2", "nack 3")
	testkit.Eventually(t, within, "room for a call", func() bool {
		c.send(callFrame("4", "test.nobody", time.Minute))
		return c.next().kind == Ack
	})
	c.send(subFrame("5", "a"), subFrame("6", "b"), subFrame("7", "b"), subFrame("8", "c"), unsubFrame("9", "a"), subFrame("a", "c"))
	c.want("ack 5", "ack 6", "ack 7", "nack 8", "ack 9", "ack a")
	c.send(subFrame("b", strings.Repeat("x", 13)), callFrame("c", strings.Repeat("x", 13), time.Minute), pubFrame("d", strings.Repeat("x", 13), ""))
	c.want("nack b", "nack c", "nack d")
}

func TestLimitsOfHandshakes(t *testing.T) {
	url, server, _ := start(t, Options{MaxSockets: 2}, noBounds)
	for i, want := range []int{101, 101, 503} {
		if got, _ := knock(t, url, nil); got != want {
			t.Errorf("socket %d: %d", i, got)
		}
	}
	testkit.Equal(t, server.Stats().Refused["sockets"], 1, "sockets refused")
	url, server, _ = start(t, Options{HandshakesPerSecond: 3}, noBounds)
	refused := 0
	for range 20 {
		if got, _ := knock(t, url, nil); got == http.StatusServiceUnavailable {
			refused++
		}
	}
	testkit.Want(t, refused != 0 && uint64(refused) == server.Stats().Refused["rate"],
		"%d of 20 were refused, %d counted", refused, server.Stats().Refused["rate"])
}

// One source alone has nearly all of a rate, and leaves room for others.
func TestSharedRate(t *testing.T) {
	r, now := newRateOfAll(100), time.Unix(1e9, 0)
	var greedy, modest debt
	passed, served := 0, 0
	for tick := range 10_000 { // 10 s, of which the greedy one asks 10,000 times
		now = now.Add(time.Millisecond)
		if r.allows(now, &greedy, 1) {
			passed++
		}
		if tick >= 5_000 && tick%50 == 0 && r.allows(now, &modest, 1) {
			served++
		}
	}
	testkit.Want(t, passed >= 800 && passed <= 1050 && served == 100,
		"the greedy one had %d of 1000, the modest one %d of 100", passed, served)
}

// RFC 6455, section 8.1: text that is not UTF-8 ends the socket with 1007.
func TestTextIsUTF8(t *testing.T) {
	url, server, _ := start(t, Options{}, noBounds)
	c := dial(t, url)
	c.send("{\"meta\":{\"type\":3},\"payload\":{\"channel\":\"\xff\"}}")
	c.wantClosed(websocket.CloseInvalidFramePayloadData)
	wantEnded(t, server, "message", 1)
}

func wantEnded(t testing.TB, server *Server, reason string, n uint64) {
	t.Helper()
	testkit.Eventually(t, within, "sockets to end by "+reason, func() bool { return server.Stats().Ended[reason] == n })
}

// Who answers pings stays, who does not ends.
func TestSilence(t *testing.T) {
	url, server, _ := start(t, Options{Ping: time.Second}, noBounds)
	silent, alive := dial(t, url), dial(t, url)
	silent.ws.SetPingHandler(func(string) error { return nil })
	var pings atomic.Int64
	alive.ws.SetPingHandler(func(payload string) error {
		pings.Add(1)
		return alive.ws.WriteControl(websocket.PongMessage, []byte(payload), time.Now().Add(within))
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		alive.ws.ReadMessage()
	}()
	silent.want("end")
	wantEnded(t, server, "idle", 1)
	testkit.Eventually(t, within, "pings", func() bool { return pings.Load() > 1 })
	testkit.Equal(t, server.Stats().Sockets, 1, "sockets are left")
	alive.ws.Close()
	<-ended
}

// A message that does not come to its end ends the socket.
func TestSlowMessage(t *testing.T) {
	url, server, _ := start(t, Options{ReadTimeout: 100 * time.Millisecond}, noBounds)
	c := dial(t, url)
	// A text frame of 100 bytes, masked by zeros, of which ten come.
	_, err := c.ws.NetConn().Write(append([]byte{0x81, 0x80 | 100, 0, 0, 0, 0}, "{\"meta\":{}"...))
	testkit.Must(t, err)
	c.want("end")
	wantEnded(t, server, "slow", 1)
}

// A client that pings and reads nothing is not read from without end, and ends.
func TestRepliesThatNobodyReads(t *testing.T) {
	url, server, _ := start(t, Options{WriteTimeout: 300 * time.Millisecond}, noBounds)
	c := dial(t, url)
	c.ws.NetConn().(*net.TCPConn).SetReadBuffer(4 << 10)
	testkit.Eventually(t, within, "the socket", func() bool { return server.Stats().Sockets == 1 })
	server.sessions()[0].net.(*net.TCPConn).SetWriteBuffer(4 << 10)
	frame := []byte(callFrame("1", "test.echo", time.Minute))
	c.ws.SetWriteDeadline(time.Now().Add(within))
	for c.ws.WriteMessage(websocket.TextMessage, frame) == nil {
		used := server.Stats().BufferedBytes
		testkit.Need(t, used <= cost(3*mostReplyBytes), "%d bytes wait for one socket", used)
	}
	testkit.Eventually(t, within, "the socket to end", func() bool { return server.Stats().Sockets == 0 })
	ended := server.Stats().Ended
	testkit.Want(t, ended["slow"]+ended["lost"] == 1, "ended: %v", ended)
}

// Sockets that begin long messages and stop go when others need their memory: whoever holds
// most. All are of one address here.
func TestStalledMessagesMakeRoom(t *testing.T) {
	url, server, _ := start(t, Options{BufferTotal: 8 << 20}, noBounds)
	for n := range 60 { // until none of any size finds room
		begun := 600_000 >> min(n/10, 6)
		c := dial(t, url)
		head := []byte{0x81, 0xff, 0, 0, 0, 0, 0, 0x0f, 0x42, 0x40, 0, 0, 0, 0} // of 1,000,000 bytes
		_, err := c.ws.NetConn().Write(append(head, strings.Repeat("x", begun)...))
		testkit.Must(t, err)
	}
	testkit.Eventually(t, within, "sockets to end for want of memory", func() bool { return server.Stats().Ended["memory"] > 5 })
	for range 3 {
		c := dial(t, url)
		c.send(frameText(Call, "1", map[string]any{"uri": "test.echo", "timeout": time.Minute, "args": strings.Repeat("y", 12_000)})).want("ack 1", "res 1")
	}
	if used := server.Stats().BufferedBytes; used > 8<<20 {
		t.Errorf("%d bytes are held", used)
	}
}

// Where a socket comes from is what its request says: whoever serves it knows of proxies.
func TestAddressOfASocket(t *testing.T) {
	b := newScripted()
	server := New(Options{Broker: b})
	addresses := []string{"203.0.113.7:0", "[2001:db8::7]:0"}
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr, addresses = addresses[0], addresses[1:]
		server.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { b.leave(); server.Close(); listener.Close() })
	for i, want := range []struct{ address, source string }{{"203.0.113.7", "203.0.113.7/32"}, {"2001:db8::7", "2001:db8::/64"}} {
		uri := []string{"a", "b"}[i]
		c := dial(t, "ws"+strings.TrimPrefix(listener.URL, "http"))
		c.send(callFrame("1", uri, within))
		testkit.Eventually(t, within, "the call", func() bool { return strings.Contains(b.list(), "call "+uri) })
		b.mu.Lock()
		got := b.calls[uri].Caller
		b.mu.Unlock()
		testkit.Want(t, got.Address == want.address && got.Source == want.source, "%+v, want %+v", got, want)
	}
}
