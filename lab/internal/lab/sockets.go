package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/client"
	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// SocketLoad is a load on a server of WebSockets: calls of one function, or events that
// are published to a channel.
type SocketLoad struct {
	// URL is "ws://HOST:PORT/PATH", or wss.
	URL string
	// URI is the function, and Args its arguments as JSON, in which
	// {{.RequestNumber}} is the number of the call.
	URI, Args string
	// Connections is how many sockets calls go over.
	Connections int
	// Channel is where events go, in the place of URI: whoever else publishes there is not
	// counted. Size is the bytes of their arguments, Subscribers the sockets that get them;
	// one more publishes.
	Channel           string
	Size, Subscribers int
	// Client is how sockets are opened.
	Client client.Options
}

// Prepare opens the sockets. What is called is not tried: nobody may serve it yet.
//
// Errors: one line that says what and where.
func (l SocketLoad) Prepare(ctx context.Context) (*Prepared, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	address, _, _ := strings.Cut(l.URL, "?") // a query may have a token in it
	p := &Prepared{what: l.URI, address: address}
	if l.Channel == "" {
		calls, err := newSocketCalls(ctx, l)
		if err != nil {
			return nil, err
		}
		p.client, p.how, p.close = calls, calls.String()+".", calls.Close
		return p, nil
	}
	events, err := newSocketEvents(ctx, l)
	if err != nil {
		return nil, err
	}
	p.what = "channel " + l.Channel
	p.client, p.how, p.close = events, events.String()+".", events.Close
	return p, nil
}

func (l SocketLoad) check() error {
	switch {
	case (l.URI == "") == (l.Channel == ""):
		return errors.New("what is the load? give one of --call URI and --channel NAME")
	case l.Channel == "" && (l.Connections < 1 || l.Connections > mostSockets):
		return fmt.Errorf("--connections %d: want 1 to %d", l.Connections, mostSockets)
	case l.Channel != "" && (l.Subscribers < 1 || l.Subscribers > mostSockets):
		return fmt.Errorf("--subscribers %d: want 1 to %d", l.Subscribers, mostSockets)
	case l.Channel != "" && (l.Size < leastSize || l.Size > 1<<20):
		return fmt.Errorf("--size %d: want %d to %d", l.Size, leastSize, 1<<20)
	}
	return nil
}

const (
	// mostSockets is the most that a load opens.
	mostSockets = 10_000
	// atATime is how many handshakes are under way together.
	atATime = 32
)

// openSockets opens n sockets.
//
// Errors: the first; then none is left open.
func openSockets(ctx context.Context, url string, n int, o client.Options) ([]*client.Client, error) {
	all := make([]*client.Client, n)
	opening, ctx := errgroup.WithContext(ctx)
	opening.SetLimit(atATime)
	for i := range all {
		opening.Go(func() (err error) {
			all[i], err = client.Dial(ctx, url, o)
			return err
		})
	}
	if err := opening.Wait(); err != nil {
		closeSockets(all)
		return nil, err
	}
	return all, nil
}

// closeSockets closes sockets, some at a time: each may wait for its server.
func closeSockets(all []*client.Client) {
	var closing errgroup.Group
	closing.SetLimit(atATime)
	for _, c := range all {
		if c != nil {
			closing.Go(func() error { c.Close(); return nil })
		}
	}
	_ = closing.Wait() // closing has no error
}

// socketFailure is the answer to a request that has ended with an error. Texts have no name and
// no time in them, which would make each of them another one.
func socketFailure(err error) traffic.Answer {
	code, text := codes.Unknown, err.Error()
	refused, isRefused := errors.AsType[*client.RefusedError](err)
	function, isFunction := errors.AsType[*client.FunctionError](err)
	lost, isLost := errors.AsType[*client.DisconnectedError](err)
	expired, isExpired := errors.AsType[*client.ExpiredError](err)
	switch {
	case isRefused:
		text = fmt.Sprintf("NACK %d %s", refused.Code, refused.Message)
		if code = caller.CodeOf(refused.Code); code == codes.Unknown || code == codes.Internal {
			code = codes.Unavailable // what a server of sockets says with 500
		}
	case isFunction:
		text = "RES with an error: " + function.Message
	case isLost:
		code, text = codes.Unavailable, "lost: the connection ended: "+lost.Cause.Error()
	case isExpired && expired.Cause != nil:
		code, text = codes.DeadlineExceeded, "EXP: there was no connection: "+expired.Cause.Error()
	case isExpired && expired.Taken:
		code, text = codes.DeadlineExceeded, "EXP: no result in time"
	case isExpired:
		code, text = codes.DeadlineExceeded, "EXP: not acknowledged in time"
	case errors.Is(err, context.Canceled):
		code, text = codes.Canceled, "given up at the end of the load"
	}
	return traffic.Answer{Code: uint32(code), Message: text}
}

func opened(all []*client.Client) (n int64) {
	for _, c := range all {
		n += c.Stats().Connections
	}
	return n
}
