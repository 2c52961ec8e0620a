package socketcaller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/cabrank/cabrank/client"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// CallOptions are what to call, and how.
type CallOptions struct {
	// URL is "ws://HOST:PORT/PATH", or wss.
	URL string
	// URI is the function.
	URI string
	// Args is JSON, in which {{.RequestNumber}} is the number of the call.
	Args string
	// Sockets is how many there are; calls go over them in turn.
	Sockets int
	// Client is how they are opened.
	Client client.Options
}

// Calls calls one function.
//
// Life: NewCalls; calls; Close when all have ended.
type Calls struct {
	options CallOptions
	fixed   json.RawMessage // nil if each call has arguments of its own
	sockets []*client.Client

	sent, errors, expired, lost atomic.Int64
}

var (
	_ traffic.Client  = (*Calls)(nil)
	_ traffic.Dialer  = (*Calls)(nil)
	_ traffic.Counter = (*Calls)(nil)
)

// requestNumber is what stands for the number of a call.
const requestNumber = "{{.RequestNumber}}"

// NewCalls opens the sockets.
//
// Errors: one line, for options that cannot be, and a server that cannot be reached.
func NewCalls(ctx context.Context, o CallOptions) (*Calls, error) {
	c := &Calls{options: o}
	filled := c.args(0)
	if !json.Valid(filled) {
		return nil, fmt.Errorf("the arguments %.80q are no JSON; a text has quotes of its own, such as '\"abc\"'", o.Args)
	}
	if bytes.Equal(filled, []byte(o.Args)) {
		c.fixed = filled
	}
	var err error
	c.sockets, err = open(ctx, o.URL, o.Sockets, o.Client)
	return c, err
}

// args are those of a call.
func (c *Calls) args(number uint64) json.RawMessage {
	if c.fixed != nil {
		return c.fixed
	}
	return bytes.ReplaceAll([]byte(c.options.Args), []byte(requestNumber), strconv.AppendUint(nil, number, 10))
}

// Call makes one call.
func (c *Calls) Call(ctx context.Context, call traffic.Call) traffic.Answer {
	ctx, cancel := call.Bound(ctx)
	defer cancel()
	args := c.args(call.Number)
	c.sent.Add(1)
	result, err := c.sockets[call.Number%uint64(len(c.sockets))].Call(ctx, c.options.URI, args)
	answer := traffic.Answer{Received: traffic.Volume{Messages: 1, Bytes: int64(len(result))}}
	if err != nil {
		c.count(err)
		answer = failed(err)
	}
	answer.Sent = traffic.Volume{Messages: 1, Bytes: int64(len(args))}
	return answer
}

// count counts a call that was not answered well.
func (c *Calls) count(err error) {
	_, isFunction := errors.AsType[*client.FunctionError](err)
	_, isLost := errors.AsType[*client.DisconnectedError](err)
	switch {
	case isFunction:
		c.errors.Add(1)
	case isLost:
		c.lost.Add(1)
	case errors.Is(err, context.DeadlineExceeded):
		c.expired.Add(1)
	}
}

// Opened returns how many connections were opened so far.
func (c *Calls) Opened() int64 { return opened(c.sockets) }

// Counts returns the messages so far.
func (c *Calls) Counts() []traffic.Count {
	var sum client.Stats
	for _, s := range c.sockets {
		n := s.Stats()
		sum.Acks += n.Acks
		sum.Nacks += n.Nacks
		sum.Results += n.Results
		sum.Late += n.Late
	}
	return []traffic.Count{
		{Name: "CALL", N: c.sent.Load()},
		{Name: "ACK", N: sum.Acks},
		{Name: "NACK", N: sum.Nacks},
		{Name: "RES", N: sum.Results},
		{Name: "of these, with an error", N: c.errors.Load()},
		{Name: "EXP", N: c.expired.Load()},
		{Name: "RES too late", N: sum.Late},
		{Name: "lost with a connection", N: c.lost.Load()},
	}
}

// String says how calls are made.
func (c *Calls) String() string { return sockets(len(c.sockets), c.sockets[0].Protocol()) }

// sockets says what calls go over.
func sockets(n int, protocol string) string {
	if n == 1 {
		return "one WebSocket, " + protocol
	}
	return fmt.Sprintf("%d WebSockets, %s", n, protocol)
}

// Close ends the sockets.
func (c *Calls) Close() { closeAll(c.sockets) }
