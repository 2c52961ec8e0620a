// Package demo is what `cabrank demo` shows: a greeter that names the worker it
// runs in, a caller that counts which worker answered, and the start of a relay
// over three greeters.
//
// Start with [Serve], [Call] and [StartRelay]. The package knows cabrank only
// from outside: as a command that it starts and an address that it calls.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/demo/demopb"
)

// How many greetings ListHellos sends: if none are asked for, and at most.
const (
	defaultHellos = 3
	maxHellos     = 1000
)

// greeter answers in the name of one worker and takes work for each greeting,
// so that a caller can see calls overlap and queue.
type greeter struct {
	demopb.UnimplementedGreeterServer
	worker string
	work   time.Duration
}

// SayHello takes the time of one greeting.
func (g *greeter) SayHello(ctx context.Context, req *demopb.HelloRequest) (*demopb.HelloReply, error) {
	return g.greet(ctx, req.GetName())
}

// ListHellos sends the greeting count times, at most maxHellos.
func (g *greeter) ListHellos(req *demopb.ListHellosRequest, out grpc.ServerStreamingServer[demopb.HelloReply]) error {
	count := min(req.GetCount(), maxHellos)
	if count == 0 {
		count = defaultHellos
	}
	for range count {
		if err := g.greetInto(out, req.GetName()); err != nil {
			return err
		}
	}
	return nil
}

// CollectNames greets the first caller by name and counts the others, so that
// its memory does not grow with the stream.
func (g *greeter) CollectNames(in grpc.ClientStreamingServer[demopb.HelloRequest, demopb.HelloReply]) error {
	first, others := "", 0
	for count := 0; ; count++ {
		req, err := in.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if count == 0 {
			first = orWorld(req.GetName())
		} else {
			others++
		}
	}
	if others > 0 {
		first += fmt.Sprintf(" and %d more", others)
	}
	reply, err := g.greet(in.Context(), first)
	if err != nil {
		return err
	}
	return in.SendAndClose(reply)
}

// Chat greets each name before it reads the next.
func (g *greeter) Chat(stream grpc.BidiStreamingServer[demopb.HelloRequest, demopb.HelloReply]) error {
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := g.greetInto(stream, req.GetName()); err != nil {
			return err
		}
	}
}

// replies is the sending side of both kinds of stream that answer.
type replies interface {
	Context() context.Context
	Send(reply *demopb.HelloReply) error
}

func (g *greeter) greetInto(out replies, name string) error {
	reply, err := g.greet(out.Context(), name)
	if err != nil {
		return err
	}
	return out.Send(reply)
}

// greet works for a while, unless the caller leaves first.
func (g *greeter) greet(ctx context.Context, name string) (*demopb.HelloReply, error) {
	select {
	case <-time.After(g.work):
		return &demopb.HelloReply{Message: "Hello, " + orWorld(name) + "!", Worker: g.worker}, nil
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

func orWorld(name string) string {
	if name == "" {
		return "world"
	}
	return name
}
