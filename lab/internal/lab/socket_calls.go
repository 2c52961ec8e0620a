package lab

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

// socketCalls calls one function.
//
// Life: newSocketCalls; calls; Close when all have ended.
type socketCalls struct {
	options SocketLoad
	fixed   json.RawMessage // nil if each call has arguments of its own
	sockets []*client.Client

	sent, errors, expired, lost atomic.Int64
}

var (
	_ traffic.Client  = (*socketCalls)(nil)
	_ traffic.Dialer  = (*socketCalls)(nil)
	_ traffic.Counter = (*socketCalls)(nil)
)

// requestNumber is what stands for the number of a call.
const requestNumber = "{{.RequestNumber}}"

// newSocketCalls opens the sockets.
//
// Errors: one line, for options that cannot be, and a server that cannot be reached.
func newSocketCalls(ctx context.Context, o SocketLoad) (*socketCalls, error) {
	c := &socketCalls{options: o}
	filled := c.args(0)
	if !json.Valid(filled) {
		return nil, fmt.Errorf("the arguments %.80q are no JSON; a text has quotes of its own, such as '\"abc\"'", o.Args)
	}
	if bytes.Equal(filled, []byte(o.Args)) {
		c.fixed = filled
	}
	var err error
	c.sockets, err = openSockets(ctx, o.URL, o.Connections, o.Client)
	return c, err
}

func (c *socketCalls) args(number uint64) json.RawMessage {
	if c.fixed != nil {
		return c.fixed
	}
	return bytes.ReplaceAll([]byte(c.options.Args), []byte(requestNumber), strconv.AppendUint(nil, number, 10))
}

// Call makes one call.
func (c *socketCalls) Call(ctx context.Context, call traffic.Call) traffic.Answer {
	ctx, cancel := call.Bound(ctx)
	defer cancel()
	args := c.args(call.Number)
	c.sent.Add(1)
	result, err := c.sockets[call.Number%uint64(len(c.sockets))].Call(ctx, c.options.URI, args)
	answer := traffic.Answer{Received: traffic.Volume{Messages: 1, Bytes: int64(len(result))}}
	if err != nil {
		c.count(err)
		answer = socketFailure(err)
	}
	answer.Sent = traffic.Volume{Messages: 1, Bytes: int64(len(args))}
	return answer
}

func (c *socketCalls) count(err error) {
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
func (c *socketCalls) Opened() int64 { return opened(c.sockets) }

// Counts returns the messages so far.
func (c *socketCalls) Counts() []traffic.Count {
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
func (c *socketCalls) String() string { return sockets(len(c.sockets), c.sockets[0].Protocol()) }

// sockets says what calls go over.
func sockets(n int, protocol string) string {
	if n == 1 {
		return "one WebSocket, " + protocol
	}
	return fmt.Sprintf("%d WebSockets, %s", n, protocol)
}

// Close ends the sockets.
func (c *socketCalls) Close() { closeSockets(c.sockets) }
