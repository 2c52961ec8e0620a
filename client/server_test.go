package client

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
)

// within bounds what has to happen.
const within = 30 * time.Second

// serve starts a server with the functions of tests.
func serve(t testing.TB) (url string, memory *broker.Memory) {
	t.Helper()
	memory = broker.NewMemory(broker.MemoryOptions{})
	for uri, f := range broker.TestFunctions() {
		memory.Serve(uri, 64, f)
	}
	for uri, f := range broker.TestStreams() {
		memory.ServeStream(uri, 64, f)
	}
	server := socket.New(socket.Options{Broker: memory})
	web := httptest.NewServer(server)
	t.Cleanup(func() {
		server.Close()
		web.Close()
		memory.Close()
	})
	return "ws" + strings.TrimPrefix(web.URL, "http"), memory
}

func dial(t testing.TB, url string, o Options) *Client {
	t.Helper()
	c, err := Dial(t.Context(), url, o)
	testkit.Must(t, err)
	t.Cleanup(c.Close)
	return c
}

// onEach runs a test with each protocol, and with the one that the server chooses.
func onEach(t *testing.T, test func(t *testing.T, c *Client)) {
	t.Helper()
	url, _ := serve(t)
	for _, protocols := range [][]string{nil, {Juggler1}, {Juggler0}} {
		t.Run(strings.Join(protocols, " "), func(t *testing.T) {
			c := dial(t, url, Options{Protocols: protocols})
			testkit.Want(t, c.Protocol() == append(protocols, Juggler1)[0], "it speaks %s", c.Protocol())
			test(t, c)
		})
	}
}

func TestCall(t *testing.T) { onEach(t, testCall) }

func testCall(t *testing.T, c *Client) {
	t.Helper()
	if got, err := Call[string](t.Context(), c, "test.reverse", "abc"); err != nil || got != "cba" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := c.Call(t.Context(), "test.echo", json.RawMessage(`"a\u0062c"`)); err != nil || string(got) != `"abc"` {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := Call[int](t.Context(), c, "test.reverse", "abc"); err == nil || !strings.Contains(err.Error(), "call test.reverse: the result: json") {
		t.Errorf("got %v", err)
	}
	if _, err := c.Call(t.Context(), "test.echo", func() {}); err == nil || !strings.Contains(err.Error(), "the argument") {
		t.Errorf("got %v", err)
	}
	_, err := c.Call(t.Context(), "test.delay", "soon")
	if failed, ok := errors.AsType[*FunctionError](err); !ok || failed.URI != "test.delay" || failed.Message == "" {
		t.Errorf("got %v", err)
	}
	_, err = c.Call(t.Context(), strings.Repeat("x", 2000), nil)
	code := 400
	if c.Protocol() == Juggler0 {
		code = 500
	}
	if no, ok := errors.AsType[*RefusedError](err); !ok || no.Code != code || no.Request != "call" {
		t.Errorf("got %v", err)
	}
	var counted []int
	for n, err := range Stream[int](t.Context(), c, "test.count", "200") {
		if failed, ok := errors.AsType[*FunctionError](err); c.Protocol() == Juggler0 && (!ok || failed.Message == "") || c.Protocol() == Juggler1 && err != nil {
			t.Errorf("got %d, %v", n, err)
		}
		counted = append(counted, n)
	}
	if c.Protocol() == Juggler1 && (len(counted) != 200 || counted[199] != 200) {
		t.Errorf("counted %v", counted)
	}
	if n := c.Stats(); n.Results != 5 || n.Acks != 5 || n.Nacks != 1 || n.Connections != 1 {
		t.Errorf("%+v", n)
	}
}

// A call ends at its deadline, by the clock of the caller, and says what was known of it;
// who cancels it is told so.
func TestCallExpires(t *testing.T) {
	url, _ := serve(t)
	c := dial(t, url, Options{CallTimeout: 30 * time.Millisecond})
	_, err := c.Call(t.Context(), "test.delay", "60000")
	expired, ok := errors.AsType[*ExpiredError](err)
	testkit.Want(t, ok && expired.Taken && errors.Is(err, context.DeadlineExceeded), "got %v", err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		testkit.Eventually(t, within, "it to be taken", func() bool { return c.Stats().Acks == 2 })
		cancel()
	}()
	_, err = c.Call(ctx, "test.delay", "60000")
	testkit.Want(t, errors.Is(err, context.Canceled), "got %v", err)
}

// Many calls at a time: none is lost, however fast its result comes.
func TestCallsAtATime(t *testing.T) { onEach(t, testCallsAtATime) }

func testCallsAtATime(t *testing.T, c *Client) {
	t.Helper()
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			for j := range 100 {
				if got, err := Call[string](t.Context(), c, "test.echo", fmt.Sprint(i, j)); err != nil || got != fmt.Sprint(i, j) {
					t.Errorf("%d %d: got %q, %v", i, j, got, err)
					return
				}
			}
		})
	}
	all.Wait()
	n := c.Stats()
	testkit.Want(t, n.Results == 5000 && n.Acks == 5000 && n.Late == 0, "%+v", n)
}

// A request that is longer than the server takes is refused here, and ends nobody else's.
func TestLongRequest(t *testing.T) {
	url, _ := serve(t)
	c := dial(t, url, Options{})
	_, err := c.Call(t.Context(), "test.echo", strings.Repeat("x", 1<<20))
	no, ok := errors.AsType[*RefusedError](err)
	testkit.Want(t, ok && no.Code == tooLongCode && strings.Contains(no.Message, "the server takes 1048576"), "got %v", err)
	_, err = c.Call(t.Context(), "test.echo", strings.Repeat("x", 1<<20-200))
	testkit.Want(t, err == nil && c.Stats().Connections == 1, "got %v, %+v", err, c.Stats())
}

// Events come in order, to all who have subscribed, until they have closed.
func TestSubscriptions(t *testing.T) { onEach(t, testSubscriptions) }

func testSubscriptions(t *testing.T, c *Client) {
	t.Helper()
	plain, err := c.Subscribe(t.Context(), "a.1")
	testkit.Must(t, err)
	pattern, err := c.SubscribePattern(t.Context(), "a.*")
	testkit.Must(t, err)
	second, err := c.Subscribe(t.Context(), "a.1")
	testkit.Must(t, err)
	second.Close()
	var last *Receipt
	for i := range 1000 {
		if last, err = c.Post(t.Context(), "a.1", i); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Must(t, last.Wait(t.Context()))
	for _, s := range []*Subscription{plain, pattern} {
		next := 0
		for i, err := range Values[int](t.Context(), s) {
			testkit.Need(t, err == nil && i == next, "got %d, %v, want %d", i, err, next)
			if next++; next == 1000 {
				s.Close()
			}
		}
	}
	_, err = plain.Next(t.Context())
	testkit.Want(t, errors.Is(err, ErrClosed), "got %v", err)
	testkit.Must(t, c.Publish(t.Context(), "a.1", nil))
	n := c.Stats()
	testkit.Want(t, n.Events == 2000 && n.Dropped == 0, "%+v", n)
}

// An event is what was published, with where it came from.
func TestEvent(t *testing.T) { onEach(t, testEvent) }

func testEvent(t *testing.T, c *Client) {
	t.Helper()
	s, err := c.SubscribePattern(t.Context(), "b?")
	testkit.Must(t, err)
	testkit.Must(t, c.Publish(t.Context(), "b1", map[string]int{"x": 1}))
	e, err := s.Next(t.Context())
	if err != nil || e.Channel != "b1" || e.Pattern != "b?" || string(e.Args) != `{"x":1}` || len(e.ID) != 36 || e.Resumed || e.Dropped != 0 {
		t.Errorf("got %+v, %v", e, err)
	}
	testkit.Must(t, c.Publish(t.Context(), "b1", 7))
	for _, err := range Values[string](t.Context(), s) {
		testkit.Want(t, err != nil && strings.Contains(err.Error(), "event of b1: json"), "got %v", err)
		break
	}
}

// Who does not read loses the oldest, and is told how many.
func TestSlowSubscription(t *testing.T) {
	s := &Subscription{client: &Client{options: Options{QueueBytes: 1000}}, ready: make(chan struct{}, 1)}
	s.interrupted()
	for i := range 100 {
		s.push(Event{Channel: "c", Args: json.RawMessage(fmt.Sprintf("%039d", i))})
	}
	first, err := s.Next(t.Context())
	testkit.Want(t, err == nil && first.Dropped == 95 && first.Resumed && string(first.Args) == fmt.Sprintf("%039d", 95),
		"got %+v, %v", first, err)
	second, err := s.Next(t.Context())
	testkit.Want(t, err == nil && second.Dropped == 0 && !second.Resumed, "got %+v, %v", second, err)
	s.push(Event{Channel: "c", Args: make(json.RawMessage, 5000)}) // larger than all of the queue
	last, err := s.Next(t.Context())
	testkit.Want(t, err == nil && len(last.Args) == 5000 && last.Dropped == 3, "got %d dropped, %v", last.Dropped, err)
	n := s.client.Stats()
	testkit.Want(t, n.Dropped == 98 && s.bytes == 0, "%+v, %d bytes", n, s.bytes)
}

// Over TLS, with a header of its own.
func TestTLS(t *testing.T) {
	memory := broker.NewMemory(broker.MemoryOptions{})
	server := socket.New(socket.Options{Broker: memory})
	header := make(chan string, 1)
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header <- r.Header.Get("Authorization")
		server.ServeHTTP(w, r)
	}))
	web.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	web.StartTLS()
	defer func() {
		server.Close()
		web.Close()
		memory.Close()
	}()
	url := "wss" + strings.TrimPrefix(web.URL, "https")
	if c, err := Dial(t.Context(), url, Options{}); err == nil || !strings.Contains(err.Error(), "x509") {
		t.Errorf("got %v, %v", c, err)
	}
	c := dial(t, url, Options{
		TLS:    &tls.Config{RootCAs: web.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs},
		Header: func(context.Context) (http.Header, error) { return http.Header{"Authorization": {"Bearer x"}}, nil },
	})
	testkit.Must(t, c.Publish(t.Context(), "c", 1))
	testkit.Equal(t, <-header, "Bearer x", "the header")
	no := errors.New("no token")
	if _, err := Dial(t.Context(), url, Options{Header: func(context.Context) (http.Header, error) { return nil, no }}); !errors.Is(err, no) {
		t.Errorf("got %v", err)
	}
}

// A wrong address, a refused handshake and a server of another kind are told in a line.
func TestDialErrors(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/no":
			http.Error(w, "not you\nnever", http.StatusForbidden)
		case "/other":
			if ws, err := (&websocket.Upgrader{}).Upgrade(w, r, nil); err == nil {
				ws.Close()
			}
		}
	}))
	defer web.Close()
	base := "ws" + strings.TrimPrefix(web.URL, "http")
	for url, want := range map[string]string{
		"localhost:9000":       `"localhost:9000": want ws://HOST:PORT/PATH, or wss`,
		"http://localhost":     `"http://localhost": want ws://HOST:PORT/PATH, or wss`,
		"http://a?token=1":     `"http://a": want`,
		base + "/no?token=1":   "/no: the server has refused the handshake with 403 Forbidden: not you",
		base + "/other":        "the server does not speak juggler.1 or juggler.0",
		base + "/nothing":      "the server has refused the handshake with 200 OK",
		"ws://127.0.0.1:1/ws":  "connection refused",
		"ws://127.0.0.1:99999": "invalid port",
	} {
		c, err := Dial(t.Context(), url, Options{})
		if err == nil {
			c.Close()
		}
		testkit.Want(t, err != nil && strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "\n"), "%s: %v", url, err)
	}
}

func TestMain(m *testing.M) { testkit.VerifyMain(m) }
