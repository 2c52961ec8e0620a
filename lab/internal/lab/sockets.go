package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/client"
	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// SocketLoad is calls of one function over WebSockets.
type SocketLoad struct {
	URL string // "ws://HOST:PORT/PATH", or wss
	// URI is the function, and Args its arguments as JSON, in which
	// {{.RequestNumber}} is the number of the call.
	URI, Args   string
	Connections int // sockets that calls go over
	Client      client.Options
}

const (
	mostSockets   = 10_000
	atATime       = 32 // handshakes under way together
	requestNumber = "{{.RequestNumber}}"
)

// Prepare opens the sockets. The function is not tried: nobody may serve it yet.
//
// Errors: one line that says what and where.
func (l SocketLoad) Prepare(ctx context.Context) (*Prepared, error) {
	switch {
	case l.URI == "":
		return nil, errors.New("which function? give --call URI")
	case l.Connections < 1 || l.Connections > mostSockets:
		return nil, fmt.Errorf("--connections %d: want 1 to %d", l.Connections, mostSockets)
	}
	calls, err := newSocketCalls(ctx, l)
	if err != nil {
		return nil, err
	}
	address, _, _ := strings.Cut(l.URL, "?") // a query may have a token in it
	return &Prepared{what: l.URI, address: address, client: calls, how: calls.String() + ".", close: calls.Close}, nil
}

// socketCalls calls one function.
//
// Life: newSocketCalls; calls; Close when all have ended.
type socketCalls struct {
	options SocketLoad
	fixed   json.RawMessage // nil if each call has arguments of its own
	sockets []*client.Client

	sent, errors, expired, lost atomic.Int64
}

// newSocketCalls opens the sockets.
//
// Errors: one line, for arguments that cannot be, and a server that cannot be reached; then
// no socket is left open.
func newSocketCalls(ctx context.Context, o SocketLoad) (*socketCalls, error) {
	c := &socketCalls{options: o, sockets: make([]*client.Client, o.Connections)}
	filled := c.args(0)
	if !json.Valid(filled) {
		return nil, fmt.Errorf("the arguments %.80q are no JSON; a text has quotes of its own, such as '\"abc\"'", o.Args)
	}
	if bytes.Equal(filled, []byte(o.Args)) {
		c.fixed = filled
	}
	opening, ctx := errgroup.WithContext(ctx)
	opening.SetLimit(atATime)
	for i := range c.sockets {
		opening.Go(func() (err error) {
			c.sockets[i], err = client.Dial(ctx, o.URL, o.Client)
			return err
		})
	}
	if err := opening.Wait(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the sockets, some at a time: each may wait for its server.
func (c *socketCalls) Close() {
	var closing errgroup.Group
	closing.SetLimit(atATime)
	for _, s := range c.sockets {
		if s != nil {
			closing.Go(func() error { s.Close(); return nil })
		}
	}
	_ = closing.Wait() // closing has no error
}

func (c *socketCalls) args(number uint64) json.RawMessage {
	if c.fixed != nil {
		return c.fixed
	}
	return bytes.ReplaceAll([]byte(c.options.Args), []byte(requestNumber), strconv.AppendUint(nil, number, 10))
}

func (c *socketCalls) Call(ctx context.Context, call traffic.Call) traffic.Answer {
	ctx, cancel := call.Bound(ctx)
	defer cancel()
	args := c.args(call.Number)
	c.sent.Add(1)
	result, err := c.sockets[call.Number%uint64(len(c.sockets))].Call(ctx, c.options.URI, args)
	answer := traffic.Answer{Received: traffic.Volume{Messages: 1, Bytes: int64(len(result))}}
	if err != nil {
		answer = c.failure(err)
	}
	answer.Sent = traffic.Volume{Messages: 1, Bytes: int64(len(args))}
	return answer
}

func (c *socketCalls) Opened() (n int64) {
	for _, s := range c.sockets {
		n += s.Stats().Connections
	}
	return n
}

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

func (c *socketCalls) String() string {
	if len(c.sockets) == 1 {
		return "one WebSocket, " + c.sockets[0].Protocol()
	}
	return fmt.Sprintf("%d WebSockets, %s", len(c.sockets), c.sockets[0].Protocol())
}

// failure counts a call that has ended with an error, and is its answer. Texts have no name and
// no time in them, which would make each of them another one.
func (c *socketCalls) failure(err error) traffic.Answer {
	code, text := codes.Unknown, err.Error()
	refused, isRefused := errors.AsType[*client.RefusedError](err)
	function, isFunction := errors.AsType[*client.FunctionError](err)
	lost, isLost := errors.AsType[*client.DisconnectedError](err)
	expired, isExpired := errors.AsType[*client.ExpiredError](err)
	if isExpired {
		c.expired.Add(1)
		code = codes.DeadlineExceeded
	}
	switch {
	case isRefused:
		text = fmt.Sprintf("NACK %d %s", refused.Code, refused.Message)
		if code = caller.CodeOf(refused.Code); code == codes.Unknown || code == codes.Internal {
			code = codes.Unavailable // what a server of sockets says with 500
		}
	case isFunction:
		c.errors.Add(1)
		text = "RES with an error: " + function.Message
	case isLost:
		c.lost.Add(1)
		code, text = codes.Unavailable, "lost: the connection ended: "+lost.Cause.Error()
	case isExpired && expired.Cause != nil:
		text = "EXP: there was no connection: " + expired.Cause.Error()
	case isExpired && expired.Taken:
		text = "EXP: no result in time"
	case isExpired:
		text = "EXP: not acknowledged in time"
	case errors.Is(err, context.Canceled):
		code, text = codes.Canceled, "given up at the end of the load"
	}
	return traffic.Answer{Code: uint32(code), Message: text}
}
