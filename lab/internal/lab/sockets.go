package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cabrank/cabrank/client"
	"github.com/cabrank/cabrank/lab/internal/goal"
	"github.com/cabrank/cabrank/lab/internal/report"
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
	// PIDs are those of Load.
	PIDs []int
}

// PreparedSockets is a load whose sockets are open. Close it when it is of no more use.
type PreparedSockets struct {
	on     target
	client interface {
		traffic.Client
		fmt.Stringer
		Close()
	}
}

// Prepare opens the sockets. What is called is not tried: nobody may serve it yet.
//
// Errors: one line that says what and where.
func (l SocketLoad) Prepare(ctx context.Context) (*PreparedSockets, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	if err := checkService(l.PIDs); err != nil {
		return nil, err
	}
	address, _, _ := strings.Cut(l.URL, "?") // a query may have a token in it
	p := &PreparedSockets{on: target{what: l.URI, address: address, pids: l.PIDs}}
	if l.Channel == "" {
		calls, err := newSocketCalls(ctx, l)
		if err != nil {
			return nil, err
		}
		p.client = calls
	} else {
		p.on.what = "channel " + l.Channel
		events, err := newSocketEvents(ctx, l)
		if err != nil {
			return nil, err
		}
		p.client = events
	}
	p.on.client, p.on.how = p.client, p.client.String()+"."
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

// Run is Prepared.Run.
func (p *PreparedSockets) Run(ctx context.Context, plan traffic.Plan, watch func(traffic.Live)) (report.Load, error) {
	return p.on.run(ctx, plan, watch)
}

// Find is Prepared.Find.
func (p *PreparedSockets) Find(ctx context.Context, o traffic.Options, first float64, thresholds goal.Thresholds, told func(goal.Step)) (goal.Result, error) {
	return p.on.find(ctx, o, first, thresholds, told)
}

// String says what is called, and where.
func (p *PreparedSockets) String() string { return p.on.what + " at " + p.on.address }

// Close ends the sockets.
func (p *PreparedSockets) Close() { p.client.Close() }
