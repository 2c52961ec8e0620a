package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// Client is one socket of a server, made again when it ends.
//
// Life: Dial, any number of calls, events and subscriptions, Close.
// Concurrency: all methods may be called from anywhere, at any time.
type Client struct {
	url     string
	name    string // the same for errors: a query may have a token in it
	options Options
	counts  counts

	ctx   context.Context //nolint:containedctx // of what is made in the background: it ends with Close
	stop  context.CancelFunc
	ended chan struct{} // closed when no goroutine is left

	mu     sync.Mutex
	link   *link         // nil while there is no connection
	up     chan struct{} // closed when there is a link, or an end
	down   error         // why there is no link
	over   error         // why there will never be another one; nil before
	topics map[topic][]*Subscription
}

// counts is what Stats tells.
type counts struct {
	acks, nacks, results, late, events, dropped, connections atomic.Int64
}

// Stats is what a client has seen so far.
type Stats struct {
	// Acks, Nacks and Results are answers of the server.
	Acks, Nacks, Results int64
	// Late are results of calls that had ended before: at their deadline, or
	// because nobody waited for them any more.
	Late int64
	// Events are those that came, once for each channel and pattern, and Dropped
	// those that a subscription had no room for.
	Events, Dropped int64
	// Connections were opened.
	Connections int64
}

// Stats returns what the client has seen so far.
func (c *Client) Stats() Stats {
	n := &c.counts
	return Stats{
		Acks: n.acks.Load(), Nacks: n.nacks.Load(), Results: n.results.Load(), Late: n.late.Load(),
		Events: n.events.Load(), Dropped: n.dropped.Load(), Connections: n.connections.Load(),
	}
}

// Dial opens a connection to "ws://HOST:PORT/PATH", or wss.
//
// Errors: why it could not be opened; then there is no client. Later connections are
// made in the background.
func Dial(ctx context.Context, address string, options Options) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		shown, _, _ := strings.Cut(address, "?")
		return nil, fmt.Errorf("%.200q: want ws://HOST:PORT/PATH, or wss", shown)
	}
	c := &Client{
		url: address, name: u.Scheme + "://" + u.Host + u.Path, options: options.withDefaults(), topics: map[topic][]*Subscription{},
		ended: make(chan struct{}), up: make(chan struct{}),
	}
	c.ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	l, err := c.open(ctx)
	if err != nil {
		c.stop()
		return nil, err
	}
	c.attach(l)
	go c.run(l) // ends with Close, or with its connection; Close waits for it
	return c, nil
}

// Protocol returns what was agreed with the server; empty while there is no connection.
func (c *Client) Protocol() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil {
		return ""
	}
	return c.link.ws.Subprotocol()
}

// Connection returns the id by which an application can reach this connection (publish to
// it, or end it); empty while there is none, and under juggler.0.
func (c *Client) Connection() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil {
		return ""
	}
	return c.link.id
}

// Done is closed when the client has ended: by Close, or with its connection if it makes
// no other one. It makes none if the server has closed it with 1000 or 4403.
func (c *Client) Done() <-chan struct{} { return c.ended }

// Err returns why the client has ended, or nil.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// Close ends the client. What is under way ends with a DisconnectedError, what begins
// later with ErrClosed. It takes a second at most, if the server does not answer.
func (c *Client) Close() {
	c.mu.Lock()
	first, l := c.over == nil, c.link
	if first {
		c.finish(ErrClosed)
	}
	c.mu.Unlock()
	if first {
		c.stop()
		if l != nil {
			l.bye()
		}
	}
	<-c.ended
}

// finish ends all subscriptions and all waiting. By mu, once.
func (c *Client) finish(why error) {
	c.over = why
	for _, all := range c.topics {
		for _, s := range all {
			s.end(why)
		}
	}
	clear(c.topics)
	if c.link == nil {
		close(c.up) // whoever waits finds the end
	}
}

// open makes a connection, and agrees on the protocol.
func (c *Client) open(ctx context.Context) (*link, error) {
	o := &c.options
	ctx, cancel := context.WithTimeout(ctx, o.HandshakeTimeout)
	defer cancel()
	header, err := o.header(ctx)
	if err != nil {
		return nil, err
	}
	dial := o.DialContext
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	wire := &corked{timeout: o.WriteTimeout}
	dialer := websocket.Dialer{
		Subprotocols: o.Protocols, TLSClientConfig: o.TLS,
		NetDialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			wire.Conn = conn
			return wire, err
		},
	}
	ws, response, err := dialer.DialContext(ctx, c.url, header)
	if err != nil {
		return nil, explainDial(c.name, response, err)
	}
	response.Body.Close()
	d, w, err := agreed(ctx, ws, o)
	if err != nil {
		ws.Close()
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	c.counts.connections.Add(1)
	l := newLink(ws, d, wire, c)
	l.id, l.ttl, l.longest = w.Connection, milliseconds(w.TTL), max(w.Limits.Message, 0)
	return l, nil
}

// agreed returns the dialect that the server has chosen, and its first words, if it has
// any.
func agreed(ctx context.Context, ws *websocket.Conn, o *Options) (d dialect, w welcome, err error) {
	ws.SetReadLimit(o.ReadLimit)
	switch ws.Subprotocol() {
	case Juggler0:
		return juggler0{}, w, nil
	case Juggler1:
		deadline, _ := ctx.Deadline() // there is one, see open
		if err := ws.SetReadDeadline(deadline); err != nil {
			return nil, w, err
		}
		_, body, err := ws.ReadMessage()
		if err != nil {
			return nil, w, fmt.Errorf("the server does not say that it is there: %w", err)
		}
		w, err = readWelcome(body)
		return new(juggler1), w, err
	}
	return nil, w, fmt.Errorf("the server does not speak %s", strings.Join(o.Protocols, " or "))
}

// explainDial adds to an error what the server has said of it.
func explainDial(address string, response *http.Response, err error) error {
	if response == nil || !errors.Is(err, websocket.ErrBadHandshake) {
		return fmt.Errorf("%s: %w", address, err)
	}
	body := make([]byte, 200)
	n, _ := response.Body.Read(body) // gorilla keeps its beginning in memory
	said, _, _ := strings.Cut(strings.TrimSpace(string(body[:n])), "\n")
	response.Body.Close()
	if said != "" {
		said = ": " + said
	}
	return fmt.Errorf("%s: the server has refused the handshake with %s%s", address, response.Status, said)
}

// run serves the connection, and makes another one when it ends.
func (c *Client) run(l *link) {
	defer close(c.ended)
	defer c.stop()
	for attempt := 0; l != nil; {
		c.options.Notify(Status{Connected: true})
		began := time.Now()
		err := l.serve()
		if !c.detach(err) {
			return
		}
		if time.Since(began) >= c.options.ReconnectMax {
			attempt = 0 // else a server that takes connections and drops them is asked less and less
		}
		l, attempt = c.redial(err, attempt)
	}
}

// detach takes away the connection, and reports whether another one is wanted.
func (c *Client) detach(why error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link, c.down = nil, why
	if c.over != nil {
		return false
	}
	c.up = make(chan struct{})
	if c.options.NoReconnect || isDismissal(why) {
		c.finish(why)
		return false
	}
	for _, all := range c.topics {
		for _, s := range all {
			s.interrupted()
		}
	}
	return true
}

// isDismissal reports whether the application has ended the connection, and does not
// want another one: 1000, and 4403 of juggler.1.
func isDismissal(why error) bool {
	return websocket.IsCloseError(errors.Unwrap(why), websocket.CloseNormalClosure, 4403)
}

// redial makes a connection, as often as it takes; nil when the client was closed. It
// returns the number of the next attempt.
func (c *Client) redial(why error, attempt int) (*link, int) {
	for {
		pause := c.options.pause(attempt)
		attempt++
		c.options.Notify(Status{Err: why, Pause: pause})
		if !c.sleep(pause) {
			return nil, 0
		}
		l, err := c.open(c.ctx)
		switch {
		case err == nil && c.attach(l):
			return l, attempt
		case err == nil:
			l.end(ErrClosed)
			return nil, 0
		case c.ctx.Err() != nil:
			return nil, 0
		}
		why = err
		c.mu.Lock()
		c.down = why
		c.mu.Unlock()
	}
}

// pause is how long is waited before an attempt, the first being 0.
func (o *Options) pause(attempt int) time.Duration {
	most := min(o.ReconnectMin<<min(attempt, 20), o.ReconnectMax)
	return most/2 + rand.N(most/2+1)
}

// sleep reports false when the client was closed.
func (c *Client) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// attach makes a connection the one that is used, with all subscriptions. It reports
// false when the client was closed.
func (c *Client) attach(l *link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over != nil {
		return false
	}
	c.link, c.down = l, nil
	c.resubscribe(l) // before anybody else, so that what is published next finds them
	close(c.up)
	return true
}

// await returns the connection, once there is one.
//
// Errors: that of ctx, and why there is no connection meanwhile; why there will be none.
func (c *Client) await(ctx context.Context) (l *link, down, err error) {
	for {
		c.mu.Lock()
		l, up, over := c.link, c.up, c.over
		c.mu.Unlock()
		switch {
		case over != nil:
			return nil, nil, over
		case l != nil:
			return l, nil, nil
		}
		select {
		case <-up:
		case <-ctx.Done():
			c.mu.Lock()
			down = c.down
			c.mu.Unlock()
			return nil, down, ctx.Err()
		}
	}
}
