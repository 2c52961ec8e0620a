package socket

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/testkit"
)

// client1 speaks juggler.1.
type client1 struct{ client }

// join opens a socket and takes its welcome.
func join(t testing.TB, dialer *websocket.Dialer, url string) *client1 {
	t.Helper()
	dialer.Subprotocols = []string{Protocol1}
	c := &client1{client{t, open(t, dialer, url)}}
	got := c.next()
	testkit.Need(t, strings.HasPrefix(got, `{"type":"welcome"`), "first: %s", got)
	return c
}

func (c *client1) send(messages ...string) *client1 {
	c.t.Helper()
	c.client.send(messages...)
	return c
}

// next returns a message, or how the socket has ended.
func (c *client1) next() string {
	c.t.Helper()
	c.ws.SetReadDeadline(time.Now().Add(within))
	_, content, err := c.ws.ReadMessage()
	if err != nil {
		return err.Error()
	}
	return string(content)
}

func (c *client1) want(messages ...string) {
	c.t.Helper()
	for _, want := range messages {
		got := c.next()
		testkit.Need(c.t, got == want, "got %s, want %s", got, want)
	}
}

// Results wait for their ack, in their order, however early they come; credit is counted.
func TestResultsWaitForTheirAck(t *testing.T) {
	url, _, b := startScripted(t, Options{})
	c := join(t, &websocket.Dialer{}, url)
	c.send(`{"type":"sub","id":1,"channel":"slow"}`, `{"type":"call","id":2,"uri":"a","credit":2}`)
	b.await(t, "sub slow", "call a")
	stream := b.calls["a"].Stream
	granted := make(chan int, 10)
	stream.Watch(func(n int) { granted <- n })
	if first := <-granted; first != 2 { // before there is more, which would be told with it
		t.Errorf("told of %d", first)
	}
	for _, want := range []bool{true, true, false} {
		testkit.Equal(t, stream.Offer(json.RawMessage("1")), want, "offered")
	}
	b.done("call a", nil)
	c.send(`{"type":"credit","id":2,"credit":7}`)
	testkit.Equal(t, <-granted, 7, "credit that is told")
	b.done("sub slow", nil)
	c.want(`{"type":"ack","id":1}`, `{"type":"ack","id":2}`, `{"type":"res","id":2,"args":1,"more":true}`, `{"type":"res","id":2,"args":1,"more":true}`)
	testkit.Must(t, stream.Send(t.Context(), json.RawMessage("3")))
	b.answer("a", "4")
	c.want(`{"type":"res","id":2,"args":3,"more":true}`, `{"type":"res","id":2,"args":4}`)
	err := stream.Send(t.Context(), json.RawMessage("5"))
	testkit.Want(t, err != nil && !stream.Offer(json.RawMessage("6")), "after the end: %v", err)
}

// Who gives credit for more than it reads holds up its function, and not the memory of
// the server; who reads gets all.
func TestStreamWaitsForItsReader(t *testing.T) {
	url, server, b := start(t, Options{}, noBounds)
	const results, size = 600, 10_000
	sent := make(chan int, results)
	defer b.ServeStream("big", 1, func(_ context.Context, _ json.RawMessage, send func(json.RawMessage) error) (json.RawMessage, error) {
		text := json.RawMessage(`"` + strings.Repeat("x", size) + `"`)
		for i := range results {
			if err := send(text); err != nil {
				return nil, err
			}
			sent <- i
		}
		return nil, nil
	})()
	c := join(t, &websocket.Dialer{}, url)
	server.sessions()[0].net.(*net.TCPConn).SetWriteBuffer(4 << 10)
	c.send(`{"type":"call","id":1,"uri":"big","credit":600}`).want(`{"type":"ack","id":1}`)
	testkit.Eventually(t, within, "the function to wait", func() bool {
		before := len(sent)
		<-time.After(50 * time.Millisecond)
		return before > 0 && len(sent) == before
	})
	used := server.Stats().BufferedBytes
	testkit.Want(t, used <= cost(pausedBytes+mostBatchBytes+3*size), "%d bytes wait", used)
	got := 0
	for strings.HasSuffix(c.next(), `"more":true}`) {
		got++
	}
	testkit.Want(t, got == results && len(sent) == results, "%d results", got)
}

// A function elsewhere is told of some credit at a time, and of none while its caller does
// not read: neither the socket ends by that, nor is more in memory.
func TestCreditIsToldWhileTheClientReads(t *testing.T) {
	url, server, b := startScripted(t, Options{WriteLimit: 100_000})
	c := join(t, &websocket.Dialer{}, url)
	server.sessions()[0].net.(*net.TCPConn).SetWriteBuffer(4 << 10)
	c.send(`{"type":"call","id":1,"uri":"a","credit":900}`)
	b.await(t, "call a").done("call a", nil)
	c.want(`{"type":"ack","id":1}`)
	const results, size = 900, 10_000
	granted, sent := make(chan int, results), 0
	stream := b.calls["a"].Stream
	stream.Watch(func(n int) { granted <- n })
	text := json.RawMessage(`"` + strings.Repeat("x", size) + `"`)
	offer := func() bool { // false: no credit came for some time
		select {
		case n := <-granted:
			for range n {
				testkit.Need(t, stream.Offer(text), "credit was told, and is none")
			}
			sent += n
			return true
		case <-time.After(100 * time.Millisecond):
			return false
		}
	}
	for offer() {
	}
	if used := server.Stats().BufferedBytes; sent == results || used > cost(pausedBytes+mostBatchBytes+(mostTold+3)*size) {
		t.Errorf("%d results are sent, %d bytes wait", sent, used)
	}
	read := make(chan int)
	go func() {
		n := 0
		for n < results && strings.HasSuffix(c.next(), `"more":true}`) {
			n++
		}
		read <- n
	}()
	testkit.Eventually(t, within, "all results", func() bool { return offer() && sent == results })
	testkit.Equal(t, <-read, results, "results")
	c.send(`{"type":"credit","id":1,"credit":1}`)
	<-granted
	if stream.Offer(json.RawMessage(`"` + strings.Repeat("x", 200_000) + `"`)) {
		t.Error("a result that is too long was taken")
	}
	c.want(`{"type":"res","id":1,"error":{"code":413,"message":"the result is longer than a message may be"}}`)
	b.answer("a", "1")
	c.send(`{"type":"ping"}`).want(`{"type":"pong"}`)
}

// A function that waits for credit is let go by the end of its socket.
func TestStreamEndsWithItsSocket(t *testing.T) {
	url, server, b := start(t, Options{}, noBounds)
	began, ended := make(chan struct{}), make(chan error, 1)
	defer b.ServeStream("s", 1, func(_ context.Context, _ json.RawMessage, send func(json.RawMessage) error) (json.RawMessage, error) {
		close(began)
		err := send(json.RawMessage("1"))
		ended <- err
		return nil, err
	})()
	c := join(t, &websocket.Dialer{}, url)
	c.send(`{"type":"call","id":1,"uri":"s","credit":0}`).want(`{"type":"ack","id":1}`)
	<-began // the ack may come first, and a call that has not begun ends without its function
	c.ws.Close()
	err := testkit.Take(t, ended, within, "it waits")
	testkit.Want(t, err != nil, "it was sent")
	testkit.Eventually(t, within, "the socket to end", func() bool { return server.Stats().Sockets == 0 && server.Stats().Calls == 0 })
}

// Who does not read its events is told so by the end of its socket, also if it is the
// memory of all that is used up. A socket of juggler.0 beside it loses the oldest.
func TestOverflowEnds(t *testing.T) {
	for name, options := range map[string]Options{
		"queue":  {QueueBytes: 64 << 10},
		"budget": {QueueBytes: 8 << 20, BufferTotal: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			url, server, b := start(t, options, noBounds)
			c, old := join(t, &websocket.Dialer{}, url), dial(t, url)
			for _, session := range server.sessions() {
				session.net.(*net.TCPConn).SetWriteBuffer(4 << 10)
			}
			c.send(`{"type":"sub","id":1,"channel":"c"}`).want(`{"type":"ack","id":1}`)
			old.send(subFrame("1", "c")).want("ack 1")
			args := json.RawMessage(`"` + strings.Repeat("x", 2000) + `"`)
			events := 0
			testkit.Eventually(t, within, "the socket to end", func() bool {
				for range 100 {
					b.Publish(broker.Event{Channel: "c", ID: idOf("1"), Args: args}, func(error) {})
				}
				events += 100
				return server.Stats().Ended["overflow"] == 1 || events > 1_000_000 || server.sessionsOf(juggler1) == 0
			})
			got := c.wantClosed(closeOverflow)
			testkit.Want(t, got < events, "%d of %d events came", got, events)
			wantEnded(t, server, "overflow", 1)
			testkit.Want(t, server.Stats().Sockets == 1, "the other one has ended, too")
		})
	}
}

// sessionsOf counts those that have not been told to go.
func (s *Server) sessionsOf(d dialect) (n int) {
	for _, session := range s.sessions() {
		if session.dialect == d && !session.hasSaidBye() {
			n++
		}
	}
	return n
}

// Times of juggler.1 are those of its messages.
func TestTimesOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker.NewMemory(noBounds)
		defer b.Serve("hangs", 9, func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})()
		_, dialer := servePipes(t, Options{Broker: b, Ping: time.Hour})
		c := join(t, dialer, "ws://pipe/ws")
		for _, tc := range []struct {
			timeout string
			want    time.Duration
		}{{"1", time.Millisecond}, {"1.2", 2 * time.Millisecond}, {"0", time.Minute}, {"90000", 90 * time.Second}} {
			began := time.Now()
			c.send(fmt.Sprintf(`{"type":"call","id":1,"uri":"hangs","timeout":%s}`, tc.timeout))
			c.ws.SetReadDeadline(time.Time{})
			for _, want := range []string{`{"type":"ack","id":1}`, `{"type":"exp","id":1}`} {
				_, got, err := c.ws.ReadMessage()
				testkit.Need(t, string(got) == want, "got %s, %v; want %s", got, err, want)
			}
			testkit.Equal(t, time.Since(began), tc.want, "%s: it has expired after", tc.timeout)
		}
		c.ws.Close()
	})
}

// Who shows a token is told who it is and for how long; the one who has none yet, how
// long it has.
func TestTokensAreTold(t *testing.T) {
	url, _, _ := start(t, Options{Auth: tokens{
		"good": {User: "7", Expires: time.Now().Add(2 * time.Hour), Subscribe: []string{"*"}, Channels: []string{"u7"}},
	}}, noBounds)
	c := &client1{client{t, open(t, &websocket.Dialer{Subprotocols: []string{Protocol1}}, url)}}
	told := func() (m struct {
		Type string `json:"type"`
		User string `json:"user"`
		Auth int64  `json:"auth"`
		TTL  int64  `json:"ttl"`
	}) {
		t.Helper()
		testkit.Must(t, json.Unmarshal([]byte(c.next()), &m))
		return m
	}
	hour := time.Hour.Milliseconds()
	if m := told(); m.Type != "welcome" || m.User != "" || m.TTL != 0 || m.Auth > firstTokenTime.Milliseconds() || m.Auth < 1 {
		t.Errorf("welcome: %+v", m)
	}
	c.send(`{"type":"sub","id":1,"channel":"c"}`, `{"type":"auth","id":2,"token":"bad"}`)
	c.want(`{"type":"nack","id":1,"error":{"code":401,"message":"a token is needed first"}}`, `{"type":"nack","id":2,"error":{"code":401,"message":"no such token"}}`)
	c.send(`{"type":"auth","id":3,"token":"good"}`).want(`{"type":"sub","channel":"u7"}`)
	if m := told(); m.Type != "ack" || m.User != "7" || m.TTL > 2*hour || m.TTL < 2*hour-60_000 {
		t.Errorf("ack: %+v", m)
	}
	c.send(`{"type":"sub","id":4,"channel":"c"}`).want(`{"type":"ack","id":4}`)
}

// methods are those of gRPC, which take messages as they are.
type methods struct{ calls chan broker.Call }

func (m methods) Takes(uri string) bool { return strings.HasPrefix(uri, "/") }

func (m methods) Call(_ context.Context, call broker.Call) {
	call.Accepted(nil)
	m.calls <- call
}

func (m methods) Left(*broker.Caller) {}

// A method is called with protobuf, and answers with it, or with an error that is not.
func TestMethodsTakeProtobuf(t *testing.T) {
	m := methods{make(chan broker.Call, 1)}
	url, _, _ := start(t, Options{Methods: m}, noBounds)
	ws := open(t, &websocket.Dialer{Subprotocols: []string{Protocol1Proto}}, url)
	next := func() string {
		t.Helper()
		ws.SetReadDeadline(time.Now().Add(within))
		kind, content, err := ws.ReadMessage()
		testkit.Need(t, err == nil && kind == websocket.BinaryMessage, "%v %v", kind, err)
		return string(content)
	}
	next() // the welcome
	for name, tc := range map[string]struct {
		end  func(broker.Call)
		want []string
	}{
		"a result": {func(c broker.Call) { c.Answered([]byte{7, 0}, nil) }, []string{"\x08\x09\x10\x01\x42\x02\x07\x00"}},
		"several": {func(c broker.Call) {
			testkit.Must(t, c.Stream.Send(t.Context(), []byte{6}))
			c.Answered(nil, nil)
		}, []string{"\x08\x09\x10\x01\x42\x01\x06\x58\x01", "\x08\x09\x10\x01"}},
		"an error": {
			func(c broker.Call) { c.Answered(nil, &broker.CodeError{Code: 5, Text: "none"}) },
			[]string{"\x08\x09\x10\x01\x62\x25\x08\x05\x12\x04none\x1a\x1b" + `{"code":5,"message":"none"}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			// call, number 1, /s/m, protobuf 08 01, credit 9
			testkit.Must(t, ws.WriteMessage(websocket.BinaryMessage, []byte("\x08\x01\x10\x01\x22\x04/s/m\x42\x02\x08\x01\x50\x09")))
			c := <-m.calls
			testkit.Want(t, string(c.Args) == "\x08\x01" && c.Content == broker.Protobuf && c.URI == "/s/m", "called with %+v", c)
			tc.end(c)
			for _, want := range append([]string{"\x08\x08\x10\x01"}, tc.want...) {
				testkit.Equal(t, next(), want, "next")
			}
		})
	}
}
