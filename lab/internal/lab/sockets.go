package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cabrank/cabrank/client"
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
	// PIDs are those of Load.
	PIDs []int
}

// Prepare opens the sockets. What is called is not tried: nobody may serve it yet.
//
// Errors: one line that says what and where.
func (l SocketLoad) Prepare(ctx context.Context) (*Prepared, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	if err := checkService(l.PIDs); err != nil {
		return nil, err
	}
	address, _, _ := strings.Cut(l.URL, "?") // a query may have a token in it
	p := &Prepared{what: l.URI, address: address, pids: l.PIDs}
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
