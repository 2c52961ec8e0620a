package oldjuggler

import (
	"encoding/json"
	"errors"
	"sync"

	"github.com/gomodule/redigo/redis"
	"github.com/gorilla/websocket"
)

// conn is one socket with its two connections to Redis: one waits for results, one
// has the subscriptions.
type conn struct {
	server  *Server
	ws      *websocket.Conn
	id      UUID
	allowed map[int]bool

	mu    sync.Mutex // one writer at a time
	ended sync.WaitGroup

	opening sync.Mutex // guards what follows until it is open
	dropped bool
	results redis.Conn
	pubsub  redis.PubSubConn
}

var errRefused = errors.New("message refused")

// serve ends when the socket does.
func (c *conn) serve() {
	defer c.ended.Wait()
	defer c.drop()
	if err := c.open(); err != nil {
		return
	}
	for {
		kind, r, err := c.ws.NextReader()
		if err != nil || kind != websocket.TextMessage {
			return
		}
		var m Message
		if err := json.NewDecoder(r).Decode(&m); err != nil {
			return
		}
		if err := c.handle(m); err != nil {
			return
		}
	}
}

// open dials what the allowed messages need.
func (c *conn) open() error {
	c.opening.Lock()
	defer c.opening.Unlock()
	if c.dropped {
		return errRefused
	}
	if c.allowed[Call] {
		results, err := c.server.options.Dial()
		if err != nil {
			return err
		}
		c.results = results
		c.ended.Go(c.forwardResults)
	}
	if c.allowed[Sub] || c.allowed[Unsub] {
		pubsub, err := c.server.options.Dial()
		if err != nil {
			return err
		}
		c.pubsub.Conn = pubsub
	}
	if c.allowed[Sub] {
		c.ended.Go(c.forwardEvents)
	}
	return nil
}

// drop ends the socket without a close frame.
func (c *conn) drop() {
	c.opening.Lock()
	defer c.opening.Unlock()
	if c.dropped {
		return
	}
	c.dropped = true
	c.ws.Close()
	if c.results != nil {
		c.results.Close()
	}
	if c.pubsub.Conn != nil {
		_ = c.pubsub.Close() // as the socket beside it
	}
}

// handle answers one request; an error ends the socket.
func (c *conn) handle(m Message) error {
	if !c.allowed[m.Meta.Type] {
		return errRefused
	}
	r, err := payloadOf(m)
	if err != nil {
		return err
	}
	if m.Meta.Type == Call && r.call.URI == c.server.options.CloseURI {
		text := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "bye")
		_ = c.ws.WriteMessage(websocket.CloseMessage, text) // it ends either way
		return errRefused
	}
	channel := r.pub.Channel + r.sub.Channel // one of them is empty
	if err := c.do(m, r); err != nil {
		return c.send(Nack, nackPayload{m.Meta.UUID, m.Meta.Type, r.call.URI, channel, 500, err.Error()})
	}
	return c.send(Ack, ackPayload{m.Meta.UUID, m.Meta.Type, r.call.URI, channel})
}

// do waits for Redis; the next request of the socket waits with it.
func (c *conn) do(m Message, r request) error {
	switch m.Meta.Type {
	case Call:
		ms := r.call.Timeout / 1e6
		if ms == 0 {
			ms = 60_000
		}
		entry := stored{Conn: c.id, ID: m.Meta.UUID, URI: r.call.URI, Args: r.call.Args}
		return c.server.scripts.put(c.server.pool, callTimeoutKey(r.call.URI, m.Meta.UUID), callsKey(r.call.URI), ms, entry, c.server.options.CallCap)
	case Pub:
		payload, err := json.Marshal(published{ID: m.Meta.UUID, Args: r.pub.Args})
		if err != nil {
			return err
		}
		conn := c.server.pool.Get()
		defer conn.Close()
		_, err = conn.Do("PUBLISH", r.pub.Channel, payload)
		return err
	case Sub:
		if r.sub.Pattern {
			return c.pubsub.PSubscribe(r.sub.Channel)
		}
		return c.pubsub.Subscribe(r.sub.Channel)
	default:
		if r.sub.Pattern {
			return c.pubsub.PUnsubscribe(r.sub.Channel)
		}
		return c.pubsub.Unsubscribe(r.sub.Channel)
	}
}

// forwardResults has a goroutine for each result: they leave in any order.
func (c *conn) forwardResults() {
	defer c.drop()
	for {
		entry, err := pop(c.results, resultsKey(c.id))
		if err != nil {
			return
		}
		c.ended.Go(func() {
			left, err := c.server.scripts.left(c.server.pool, resultTimeoutKey(c.id, entry.ID))
			if err == nil && left > 0 {
				_ = c.send(Res, resPayload{entry.ID, entry.URI, entry.Args}) // a write that fails drops the socket
			}
		})
	}
}

// forwardEvents has a goroutine for each event, too.
func (c *conn) forwardEvents() {
	defer c.drop()
	for {
		switch got := c.pubsub.ReceiveWithTimeout(0).(type) {
		case redis.Message:
			c.ended.Go(func() { c.event(got) })
		case error:
			return
		}
	}
}

func (c *conn) event(got redis.Message) {
	var p published
	if err := json.Unmarshal(got.Data, &p); err == nil {
		_ = c.send(Event, eventPayload{p.ID, got.Channel, got.Pattern, p.Args}) // a write that fails drops the socket
	}
}

// send writes one message. An error has dropped the socket.
func (c *conn) send(kind int, payload any) error {
	body, err := json.Marshal(payload)
	if err == nil {
		body, err = json.Marshal(Message{Meta: Meta{kind, NewUUID()}, Payload: body})
	}
	if most := c.server.options.WriteLimit; err == nil && most > 0 && int64(len(body)) >= most {
		err = errRefused
	}
	if err == nil {
		c.mu.Lock()
		err = c.ws.WriteMessage(websocket.TextMessage, append(body, '\n'))
		c.mu.Unlock()
	}
	if err != nil {
		c.drop()
	}
	return err
}
