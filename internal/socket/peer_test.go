package socket

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/testkit"
)

// within bounds what has to happen.
const within = 30 * time.Second

// client is the other side of a socket.
type client struct {
	t  testing.TB
	ws *websocket.Conn
}

func dial(t testing.TB, url string) *client {
	t.Helper()
	return &client{t, open(t, &websocket.Dialer{Subprotocols: []string{Protocol}}, url)}
}

// open opens a socket, which is closed at the end of the test.
func open(t testing.TB, dialer *websocket.Dialer, url string) *websocket.Conn {
	t.Helper()
	ws, response, err := dialer.Dial(url, nil)
	testkit.Must(t, err)
	response.Body.Close()
	t.Cleanup(func() { ws.Close() })
	return ws
}

func (c *client) send(frames ...string) *client {
	c.t.Helper()
	for _, f := range frames {
		testkit.Must(c.t, c.ws.WriteMessage(websocket.TextMessage, []byte(f)))
	}
	return c
}

// wantClosed takes messages until the socket ends with a code.
func (c *client) wantClosed(code int) (messages int) {
	c.t.Helper()
	c.ws.SetReadDeadline(time.Now().Add(within))
	for ; ; messages++ {
		if _, _, err := c.ws.ReadMessage(); err != nil {
			testkit.Need(c.t, websocket.IsCloseError(err, code), "it has ended by %v, want %d", err, code)
			return messages
		}
	}
}

// received is a message of the server, or the end of the socket.
type received struct {
	kind    Kind
	id      string
	args    string
	message string
	code    int
	err     error
}

func (c *client) next() received {
	c.t.Helper()
	c.ws.SetReadDeadline(time.Now().Add(within))
	_, content, err := c.ws.ReadMessage()
	if err != nil {
		return received{err: err}
	}
	var m struct {
		Meta struct {
			Type Kind `json:"type"`
		} `json:"meta"`
		Payload struct {
			For     string          `json:"for"`
			Message string          `json:"message"`
			Code    int             `json:"code"`
			Args    json.RawMessage `json:"args"`
		} `json:"payload"`
	}
	err = json.Unmarshal(content, &m)
	testkit.Need(c.t, err == nil, "%s: %v", content, err)
	return received{kind: m.Meta.Type, id: m.Payload.For, args: string(m.Payload.Args), message: m.Payload.Message, code: m.Payload.Code}
}

// want takes messages and holds them against "ack 1", "nack 2", "res 3", "evnt 4", "end".
func (c *client) want(words ...string) {
	c.t.Helper()
	for _, word := range words {
		got := c.next()
		text := got.kind.String() + " " + strings.TrimLeft(got.id, "0-")
		if got.err != nil {
			text = "end"
		}
		testkit.Need(c.t, text == word, "got %s (%+v), want %s", text, got, word)
	}
}

// idOf makes an id of some hexadecimal digits.
func idOf(id string) string { return "00000000-0000-0000-0000-" + strings.Repeat("0", 12-len(id)) + id }

func callFrame(id, uri string, timeout time.Duration) string {
	return frameText(Call, id, map[string]any{"uri": uri, "timeout": timeout, "args": id})
}

func pubFrame(id, channel, args string) string {
	return frameText(Pub, id, map[string]any{"channel": channel, "args": args})
}

func subFrame(id, channel string) string {
	return frameText(Sub, id, map[string]any{"channel": channel})
}

func unsubFrame(id, channel string) string {
	return frameText(Unsub, id, map[string]any{"channel": channel})
}

func frameText(kind Kind, id string, payload any) string {
	text, _ := json.Marshal(map[string]any{"meta": map[string]any{"type": kind, "uuid": idOf(id)}, "payload": payload})
	return string(text)
}

// scripted is a broker that does what a test tells it.
type scripted struct {
	mu     sync.Mutex
	asked  []string // "call URI", "pub CHANNEL", "sub TOPIC", "unsub TOPIC"
	calls  map[string]broker.Call
	dones  map[string]func(error)
	events func(broker.Topic, broker.Event)

	begins, ended func() // of a gap
}

func newScripted() *scripted {
	return &scripted{calls: map[string]broker.Call{}, dones: map[string]func(error){}}
}

func (b *scripted) ask(what string, done func(error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, what)
	b.dones[what] = done
}

func (b *scripted) Listen(events func(broker.Topic, broker.Event)) { b.events = events }

func (b *scripted) Call(_ context.Context, call broker.Call) {
	b.mu.Lock()
	b.calls[call.URI] = call
	b.mu.Unlock()
	b.ask("call "+call.URI, call.Accepted)
}

func (b *scripted) Publish(e broker.Event, done func(error)) { b.ask("pub "+e.Channel, done) }

func (b *scripted) Subscribe(topic broker.Topic, done func(error)) { b.ask("sub "+topic.Name, done) }

func (b *scripted) Unsubscribe(topic broker.Topic, done func(error)) {
	b.ask("unsub "+topic.Name, done)
}

// await waits until the broker was asked for all of these, and nothing else, in order.
func (b *scripted) await(t testing.TB, all ...string) *scripted {
	t.Helper()
	want := strings.Join(all, ", ")
	testkit.Eventually(t, within, want, func() bool { return b.list() == want })
	return b
}

func (b *scripted) list() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.asked, ", ")
}

func (b *scripted) done(what string, err error) {
	b.mu.Lock()
	done := b.dones[what]
	b.mu.Unlock()
	done(err)
}

// leave ends all that the broker was asked for.
func (b *scripted) leave() {
	for what := range strings.SplitSeq(b.list(), ", ") {
		b.done(what, errScripted)
	}
}

func (b *scripted) answer(uri, result string) {
	b.mu.Lock()
	call := b.calls[uri]
	b.mu.Unlock()
	call.Answered(json.RawMessage(result), nil)
}

var errScripted = errors.New("as the script says")

// startScripted starts a server on a scripted broker.
func startScripted(t testing.TB, options Options) (url string, server *Server, b *scripted) {
	t.Helper()
	testkit.CheckLeaks(t)
	b = newScripted()
	options.Broker = b
	url, server = serve(t, options)
	return url, server, b
}

// dialScripted starts one, and opens a socket.
func dialScripted(t testing.TB, options Options) (c *client, server *Server, b *scripted) {
	t.Helper()
	url, server, b := startScripted(t, options)
	return dial(t, url), server, b
}

// knock asks for a socket and returns the status and what was said.
func knock(t testing.TB, url string, header http.Header) (status int, body string) {
	t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{Protocol}}
	ws, response, err := dialer.Dial(url, header)
	if err == nil {
		t.Cleanup(func() { ws.Close() })
		return response.StatusCode, ""
	}
	testkit.Need(t, response != nil, "%v", err)
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}
