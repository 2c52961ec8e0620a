package client

import (
	"context"
	"encoding/json"
)

// Message is a message as it went over the connection, for who wants to watch.
type Message struct {
	// Sent says that it is the client's own.
	Sent bool
	// Kind is "call", "pub", "sub", "unsb", "ack", "nack", "res" or "evnt"; or "exp",
	// which is a call that has expired by the clock of the client, and "raw", which
	// is a text of Send. One that is not known is a number.
	Kind string
	// ID is that of the request, also in its answers; of an event that of its
	// publisher's message.
	ID string
	// Name is the URI or the channel; of an answer only if the server says it.
	Name string
	// Pattern is of an event, or of a request that is for a pattern.
	Pattern string
	// Code and Text are of a nack.
	Code int
	Text string
	// Args is what a call, an event or a result has, as JSON.
	Args json.RawMessage
}

// Send sends a text as it is: for tools that try what a server does.
//
// Errors: as Client.Post.
func (c *Client) Send(ctx context.Context, text string) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	l, down, err := c.await(ctx)
	if err == nil {
		err = l.room(ctx)
	}
	if err != nil {
		return ended(err, &ExpiredError{Request: "send", Name: "a text", After: c.options.CallTimeout, Cause: down})
	}
	l.trace(Message{Sent: true, Kind: "raw", Text: text})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return &DisconnectedError{Request: "send", Name: "a text", Cause: l.err}
	}
	l.enqueue(outgoing{frame: []byte(text)})
	return nil
}

// trace tells whoever watches.
func (l *link) trace(m Message) {
	if l.options.Trace != nil {
		l.options.Trace(m)
	}
}

func (l *link) traceRequest(r request, id string) {
	m := Message{Sent: true, Kind: r.kind.word(), ID: id, Name: r.name, Args: r.args}
	if r.pattern {
		m.Name, m.Pattern = "", r.name
	}
	l.trace(m)
}

func (l *link) traceAnswer(a *answer) {
	p := &a.Payload
	name := p.Channel
	if p.URI != "" {
		name = p.URI
	}
	l.trace(Message{Kind: a.Meta.Type.word(), ID: p.For, Name: name, Pattern: p.Pattern, Code: p.Code, Text: p.Message, Args: p.Args})
}
