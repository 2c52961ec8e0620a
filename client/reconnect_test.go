package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/testkit"
)

// lines is a server whose connections are in memory, so that a test has its own clock.
//
// Life: newLines, dials by its dial, close.
type lines struct {
	conns  chan net.Conn
	server http.Server
	over   chan struct{} // closed by close

	mu     sync.Mutex
	opened []net.Conn
	away   bool // nobody listens
}

// newLines has each socket served by serve, which returns when it has ended.
func newLines(protocol string, serve func(ws *websocket.Conn, over <-chan struct{})) *lines {
	l := &lines{conns: make(chan net.Conn), over: make(chan struct{})}
	upgrader := websocket.Upgrader{Subprotocols: []string{protocol}}
	l.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ws, err := upgrader.Upgrade(w, r, nil); err == nil {
			serve(ws, l.over)
			ws.Close()
		}
	})
	go l.server.Serve(l)
	return l
}

func (l *lines) dial(context.Context, string, string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away {
		return nil, errors.New("nobody listens")
	}
	here, there := net.Pipe()
	l.conns <- there
	l.opened = append(l.opened, here)
	return here, nil
}

// drop drops all connections. away: and there will be none.
func (l *lines) drop(away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = away
	for _, conn := range l.opened {
		conn.Close()
	}
	l.opened = nil
}

func (l *lines) Accept() (net.Conn, error) {
	if conn, ok := <-l.conns; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (l *lines) Close() error   { return nil }
func (l *lines) Addr() net.Addr { return &net.UnixAddr{} }

func (l *lines) close() {
	close(l.conns)
	close(l.over)
	l.drop(true)
	l.server.Close()
}

// message is what a client has sent.
type message struct {
	Meta struct {
		Type int    `json:"type"`
		UUID string `json:"uuid"`
	} `json:"meta"`
	Payload struct {
		Channel string        `json:"channel"`
		Timeout time.Duration `json:"timeout"`
	} `json:"payload"`
}

// answering serves a socket by what reply returns for each message: texts to send.
func answering(reply func(message) []string) func(*websocket.Conn, <-chan struct{}) {
	return func(ws *websocket.Conn, _ <-chan struct{}) {
		for {
			var m message
			if ws.ReadJSON(&m) != nil {
				return
			}
			for _, text := range reply(m) {
				if ws.WriteMessage(websocket.TextMessage, []byte(text)) != nil {
					return
				}
			}
		}
	}
}

func ack(m message) string {
	return `{"meta":{"type":8},"payload":{"for":"` + m.Meta.UUID + `"}}`
}

func event(channel, args string) string {
	return `{"meta":{"type":10},"payload":{"channel":"` + channel + `","args":` + args + `}}`
}

// scene is a test with a server.
type scene struct {
	*testing.T
	*lines
}

// bubble runs a test in virtual time, with a client of a server.
func bubble(t *testing.T, o Options, serve func(*websocket.Conn, <-chan struct{}), test func(t scene, c *Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		protocol := Juggler0
		if len(o.Protocols) > 0 {
			protocol = o.Protocols[0]
		}
		l := newLines(protocol, serve)
		defer l.close()
		o.DialContext = l.dial
		c, err := Dial(t.Context(), "ws://server", o)
		testkit.Must(t, err)
		defer c.Close()
		test(scene{t, l}, c)
	})
}

// A connection that is lost ends what is under way, and is made again with all
// subscriptions, which say so.
func TestReconnects(t *testing.T) {
	told := make(statuses, 10)
	bubble(t, Options{Notify: told.add}, answering(func(m message) []string {
		if m.Meta.Type == 3 {
			return []string{ack(m), event(m.Payload.Channel, `"x"`)}
		}
		return []string{ack(m)}
	}), func(t scene, c *Client) {
		s, err := c.Subscribe(t.Context(), "c")
		testkit.Must(t, err)
		if e, err := s.Next(t.Context()); err != nil || e.Resumed {
			t.Fatalf("got %+v, %v", e, err)
		}
		ended := make(chan error)
		go func() {
			_, err := c.Call(t.Context(), "f", 1)
			ended <- err
		}()
		synctest.Wait()
		t.drop(false)
		err = <-ended
		testkit.Want(t, isDisconnected(err, true), "got %v", err)
		if e, err := s.Next(t.Context()); err != nil || !e.Resumed || string(e.Args) != `"x"` {
			t.Errorf("got %+v, %v", e, err)
		}
		testkit.Must(t, c.Publish(t.Context(), "d", 1))
		n := c.Stats()
		testkit.Want(t, n.Connections == 2, "%+v", n)
		first, second, third := <-told, <-told, <-told
		if !first.Connected || second.Err == nil || second.Pause < 100*time.Millisecond || second.Pause > 200*time.Millisecond || !third.Connected {
			t.Errorf("told %+v, %+v, %+v", first, second, third)
		}
	})
}

// statuses are what a client has told.
type statuses chan Status

func (all statuses) add(s Status) { all <- s }

func isDisconnected(err error, sent bool) bool {
	e, ok := errors.AsType[*DisconnectedError](err)
	return ok && e.Sent == sent && e.Cause != nil
}

// While there is no server, attempts become rarer and calls wait, up to their deadline,
// and go out when it is back.
func TestServerAway(t *testing.T) {
	told := make(statuses, 100)
	var timeout time.Duration
	bubble(t, Options{Notify: told.add}, answering(func(m message) []string {
		timeout = m.Payload.Timeout
		return []string{`{"meta":{"type":9},"payload":{"for":"` + m.Meta.UUID + `","args":1}}`}
	}), func(t scene, c *Client) {
		t.drop(true)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		_, err := c.Call(ctx, "f", 1)
		e, ok := errors.AsType[*ExpiredError](err)
		testkit.Want(t, ok && e.After == 5*time.Minute && e.Cause != nil && strings.Contains(err.Error(), "nobody listens"), "got %v", err)
		synctest.Wait()
		attempts := len(told) - 1
		<-told
		for i := range attempts {
			pause := (<-told).Pause
			most := min(200*time.Millisecond<<i, 30*time.Second)
			testkit.Want(t, pause >= most/2 && pause <= most, "pause %d is %v", i, pause)
		}
		testkit.Want(t, attempts >= 15 && attempts <= 30, "%d attempts", attempts)
		back := time.AfterFunc(100*time.Second, func() { t.drop(false) })
		defer back.Stop()
		ctx, cancel = context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		got, err := Call[int](ctx, c, "f", 1)
		testkit.Want(t, err == nil && got == 1, "got %d, %v", got, err)
		testkit.Want(t, timeout <= 200*time.Second && timeout >= 170*time.Second, "the function was given %v", timeout)
	})
}

// A server that is silent is pinged, and left when it stays silent. One that answers is
// kept.
func TestSilentServer(t *testing.T) {
	deaf := func(ws *websocket.Conn, _ <-chan struct{}) {
		ws.SetPingHandler(func(string) error { return nil })
		ws.ReadMessage()
	}
	bubble(t, Options{NoReconnect: true}, deaf, func(t scene, c *Client) {
		began := time.Now()
		<-c.Done()
		took := time.Since(began)
		testkit.Want(t, took == 45*time.Second && strings.Contains(c.Err().Error(), "silent for 45s"), "left after %v: %v", took, c.Err())
	})
	alive := func(ws *websocket.Conn, _ <-chan struct{}) { ws.ReadMessage() }
	bubble(t, Options{NoReconnect: true}, alive, func(t scene, c *Client) {
		select {
		case <-c.Done():
			t.Error(c.Err())
		case <-time.After(time.Hour):
		}
	})
}

// A client that makes no other connection ends with its first one: what waits is told.
func TestNoReconnect(t *testing.T) {
	bubble(t, Options{NoReconnect: true}, answering(func(m message) []string { return []string{ack(m)} }), func(t scene, c *Client) {
		s, err := c.Subscribe(t.Context(), "c")
		testkit.Must(t, err)
		t.drop(false)
		_, err = s.Next(t.Context())
		<-c.Done()
		testkit.Want(t, err != nil && errors.Is(err, c.Err()), "got %v, the client %v", err, c.Err())
		_, err = c.Call(t.Context(), "f", 1)
		testkit.Want(t, errors.Is(err, c.Err()), "got %v", err)
	})
}

// Close ends what is under way, and all that comes later.
func TestClose(t *testing.T) {
	bubble(t, Options{}, answering(func(m message) []string { return []string{ack(m)} }), func(t scene, c *Client) {
		s, err := c.Subscribe(t.Context(), "c")
		testkit.Must(t, err)
		ended := make(chan error)
		go func() {
			_, err := c.Call(t.Context(), "f", 1)
			ended <- err
		}()
		synctest.Wait()
		c.Close()
		c.Close()
		err = <-ended
		testkit.Want(t, errors.Is(err, ErrClosed) && isDisconnected(err, true), "got %v", err)
		for e, err := range s.All(t.Context()) {
			t.Errorf("got %+v, %v", e, err)
		}
		_, err = c.Subscribe(t.Context(), "c")
		testkit.Want(t, errors.Is(err, ErrClosed), "got %v", err)
	})
	deaf := func(ws *websocket.Conn, _ <-chan struct{}) {
		ws.SetCloseHandler(func(int, string) error { return nil })
		ws.ReadMessage()
		io.Copy(io.Discard, ws.NetConn())
	}
	bubble(t, Options{}, deaf, func(t scene, c *Client) {
		began := time.Now()
		c.Close()
		took := time.Since(began)
		testkit.Want(t, took <= closeWithin, "it took %v", took)
	})
}

// A client that is closed while there is no server ends at once.
func TestCloseWhileAway(t *testing.T) {
	bubble(t, Options{}, answering(func(message) []string { return nil }), func(t scene, c *Client) {
		t.drop(true)
		synctest.Wait()
		ended := make(chan error)
		go func() { ended <- c.Publish(t.Context(), "c", 1) }()
		<-time.After(10 * time.Second)
		began := time.Now()
		c.Close()
		err := <-ended
		testkit.Want(t, errors.Is(err, ErrClosed) || isDisconnected(err, true), "got %v", err)
		testkit.Want(t, time.Since(began) == 0, "it took %v", time.Since(began))
	})
}

// A subscription that is refused when it is made again is asked for again, unless the
// server says that it is not allowed.
func TestResubscribeRefused(t *testing.T) {
	asked := map[string]int{}
	bubble(t, Options{}, answering(func(m message) []string {
		channel := m.Payload.Channel
		if m.Meta.Type != 3 {
			return []string{ack(m)}
		}
		asked[channel]++
		code := map[string]string{"later": "500", "much": "429", "never": "403"}[channel]
		if n := asked[channel]; n == 1 || code != "403" && n == 5 {
			return []string{ack(m), event(channel, "1")}
		}
		return []string{`{"meta":{"type":7},"payload":{"for":"` + m.Meta.UUID + `","code":` + code + `,"message":"no"}}`}
	}), func(t scene, c *Client) {
		subscriptions := map[string]*Subscription{}
		for _, channel := range []string{"later", "much", "never"} {
			s, err := c.Subscribe(t.Context(), channel)
			testkit.Must(t, err)
			s.Next(t.Context())
			subscriptions[channel] = s
		}
		t.drop(false)
		for _, channel := range []string{"later", "much"} {
			e, err := subscriptions[channel].Next(t.Context())
			testkit.Want(t, err == nil && e.Resumed, "got %+v, %v", e, err)
		}
		_, err := subscriptions["never"].Next(t.Context())
		synctest.Wait()
		testkit.Want(t, asked["later"] == 5 && asked["much"] == 5, "asked %v", asked)
		no, ok := errors.AsType[*RefusedError](err)
		testkit.Want(t, ok && no.Code == 403 && asked["never"] == 2, "got %v, asked %v", err, asked)
	})
}

// A server that does not read holds up who posts, and is left in the end: what was not
// sent says so.
func TestServerDoesNotRead(t *testing.T) {
	bubble(t, Options{NoReconnect: true}, func(_ *websocket.Conn, over <-chan struct{}) { <-over }, func(t scene, c *Client) {
		began := time.Now()
		text := strings.Repeat("x", 1000)
		var receipts []*Receipt
		for {
			r, err := c.Post(t.Context(), "c", text)
			if err != nil {
				break
			}
			receipts = append(receipts, r)
		}
		took := time.Since(began)
		testkit.Want(t, took == 30*time.Second && len(receipts) <= 2100 && len(receipts) >= 900, "%d in %v", len(receipts), took)
		last := receipts[len(receipts)-1].Wait(t.Context())
		testkit.Want(t, isDisconnected(receipts[0].Wait(t.Context()), true) && isDisconnected(last, false), "the last: %v", last)
	})
}

// A server that takes connections and drops them is asked more and more seldom.
func TestConnectionsThatEnd(t *testing.T) {
	told := make(statuses, 1000)
	bubble(t, Options{Notify: told.add}, func(*websocket.Conn, <-chan struct{}) {}, func(t scene, c *Client) {
		<-time.After(10 * time.Minute)
		n := c.Stats().Connections
		testkit.Want(t, n >= 20 && n <= 50, "%d connections in 10 minutes", n)
	})
}

// A server that closes with 1000 wants no other connection.
func TestDismissed(t *testing.T) {
	bubble(t, Options{}, func(ws *websocket.Conn, _ <-chan struct{}) {
		ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, "bye"), time.Now().Add(time.Second))
	}, func(t scene, c *Client) {
		<-c.Done()
		if n := c.Stats().Connections; n != 1 || !strings.Contains(c.Err().Error(), "closed the connection with 1000 bye") {
			t.Errorf("%d connections, %v", n, c.Err())
		}
	})
}

// What breaks the protocol ends the connection.
func TestBreaches(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"no message":   {"hello", "what is no message"},
		"long message": {strings.Repeat(" ", 1001) + "{}", "more than 1000 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Options{NoReconnect: true, ReadLimit: 1000}, func(ws *websocket.Conn, _ <-chan struct{}) {
				ws.WriteMessage(websocket.TextMessage, []byte(tc.text))
				ws.ReadMessage()
			}, func(t scene, c *Client) {
				<-c.Done()
				testkit.Want(t, strings.Contains(c.Err().Error(), tc.want), "it has ended by %v", c.Err())
			})
		})
	}
}
