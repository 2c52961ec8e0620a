package oldjuggler

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Incoming is a message that a client was sent, or Expired, which it raises itself.
type Incoming struct {
	Type int
	Answer
}

// Client is one socket of a caller.
//
// Life: Dial, requests, Close. What comes in goes to the handler, each message in a
// goroutine of its own: in any order.
type Client struct {
	ws      *websocket.Conn
	handler func(Incoming)
	ended   sync.WaitGroup

	mu      sync.Mutex // of the writer
	pending struct {
		sync.Mutex

		calls map[UUID]*time.Timer
	}
}

// Dial opens a socket to "ws://HOST:PORT/ws".
func Dial(url string, header http.Header, handler func(Incoming)) (*Client, error) {
	dialer := websocket.Dialer{Subprotocols: []string{Protocol}}
	ws, response, err := dialer.Dial(url, header)
	if err != nil {
		return nil, err
	}
	response.Body.Close()
	c := &Client{ws: ws, handler: handler}
	c.pending.calls = map[UUID]*time.Timer{}
	c.ended.Go(c.read)
	return c, nil
}

// Close drops the socket; calls that wait are never heard of again.
func (c *Client) Close() {
	c.ws.Close()
	c.ended.Wait()
	c.pending.Lock()
	defer c.pending.Unlock()
	for _, timer := range c.pending.calls {
		timer.Stop()
	}
}

// Call asks for a function by its URI. The handler gets an Ack or Nack, then Res or,
// when the time is over, Expired.
func (c *Client) Call(uri string, args any, timeout time.Duration) (UUID, error) {
	id := NewUUID()
	c.pending.Lock()
	c.pending.calls[id] = time.AfterFunc(timeout, func() {
		if c.forget(id) {
			c.handler(Incoming{Expired, Answer{For: id, URI: uri}})
		}
	})
	c.pending.Unlock()
	return id, c.send(id, Call, map[string]any{"uri": uri, "timeout": timeout.Nanoseconds(), "args": args})
}

// Pub publishes an event.
func (c *Client) Pub(channel string, args any) (UUID, error) {
	id := NewUUID()
	return id, c.send(id, Pub, map[string]any{"channel": channel, "args": args})
}

// Sub subscribes to a channel, or to all that match a pattern.
func (c *Client) Sub(channel string, pattern bool) (UUID, error) {
	id := NewUUID()
	return id, c.send(id, Sub, map[string]any{"channel": channel, "pattern": pattern})
}

// Unsub ends a subscription.
func (c *Client) Unsub(channel string, pattern bool) (UUID, error) {
	id := NewUUID()
	return id, c.send(id, Unsub, map[string]any{"channel": channel, "pattern": pattern})
}

func (c *Client) send(id UUID, kind int, payload any) error {
	body, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ws.WriteJSON(Message{Meta{kind, id}, body})
}

// forget reports whether a call was waiting.
func (c *Client) forget(id UUID) bool {
	c.pending.Lock()
	defer c.pending.Unlock()
	timer, waits := c.pending.calls[id]
	if waits {
		timer.Stop()
		delete(c.pending.calls, id)
	}
	return waits
}

func (c *Client) read() {
	for {
		var m Message
		if err := c.ws.ReadJSON(&m); err != nil {
			return
		}
		in := Incoming{Type: m.Meta.Type}
		if err := json.Unmarshal(m.Payload, &in.Answer); err != nil {
			continue
		}
		if m.Meta.Type == Nack && in.ForType == Call {
			c.forget(in.For)
		}
		if m.Meta.Type == Res && !c.forget(in.For) {
			continue // too late: it has expired here
		}
		c.ended.Go(func() { c.handler(in) })
	}
}
