package client

import (
	"context"
	"encoding/json"
	"time"
)

// Message is a message as it went over the connection, for who wants to watch.
type Message struct {
	// Sent says that it is the client's own.
	Sent bool
	// Kind is "call", "pub", "sub", "unsb", "ack", "nack", "res", "evnt", or "exp", which
	// is a call that has expired, here or there. "raw" is a text of Send. One that is
	// not known is as the server says it.
	Kind string
	// ID is that of the request, also in its answers; of an event that of its
	// publisher's message.
	ID string
	// Name is the URI or the channel: of an event, of a request, and of an answer to one
	// that is known.
	Name string
	// Pattern is of an event, or of a request that is for a pattern.
	Pattern string
	// Code and Text are of a nack, Text is of a raw one.
	Code int
	Text string
	// Args is what a call, an event or a result has, as JSON. Of a result that is an
	// error it is the error.
	Args json.RawMessage
	// Failed says that a result is an error, More that it is not the last one.
	Failed, More bool
}

// Send sends a text as it is: for tools that try what a server does.
//
// Errors: as Client.Post.
func (c *Client) Send(ctx context.Context, text string) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	l, err := c.ready(ctx, request{kind: "send", name: "a text"}, time.Now())
	if err != nil {
		return err
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
	m := Message{Sent: true, Kind: string(r.kind), ID: id, Name: r.name, Args: r.args}
	if r.pattern {
		m.Name, m.Pattern = "", r.name
	}
	l.trace(m)
}

func (l *link) traceAnswer(a *answer) {
	l.mu.Lock()
	w := l.waiting[a.id]
	l.mu.Unlock()
	m := Message{Kind: string(a.kind), ID: a.id, Name: a.channel, Pattern: a.pattern, Args: a.args, More: a.more}
	switch {
	case a.kind == kindExp && w == nil:
		return // it has expired here before
	case a.kind == kindRes && a.failure != nil:
		m.Failed, m.Args = true, a.failure
	default:
		m.Code, m.Text = a.code, a.message
	}
	if w != nil && a.kind != kindEvnt {
		m.Name, m.Pattern = w.name, ""
		if w.pattern {
			m.Name, m.Pattern = "", w.name
		}
	}
	l.trace(m)
}
