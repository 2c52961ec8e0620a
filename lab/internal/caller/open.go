package caller

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/cabrank/cabrank/lab/internal/method"
)

// AnswerLimit is how long a target may take to be reached, and to describe itself.
const AnswerLimit = 10 * time.Second

// Calls are of which method calls are, and with what in them.
type Calls struct {
	// Method is package.Service/Method. Files describe it, or else Known if it is there;
	// otherwise the target is asked by reflection.
	Method string
	Files  method.Files
	Known  *protoregistry.Files
	// Data are the requests; whether they are JSON is said by the way.
	Data method.Data
}

// Open finds the method, makes its requests, and returns the client for them when it can call:
// what o says of method and messages is filled in.
//
// Errors: one line that says what and where, and what to do instead.
func Open(ctx context.Context, o Options, c Calls) (*method.Method, Caller, error) { //nolint:ireturn // one of two
	conn, err := grpc.NewClient(o.Target, grpc.WithTransportCredentials(o.credentials()), grpc.WithNoProxy())
	if err != nil {
		return nil, nil, fmt.Errorf("%.80q is no address: %w", o.Target, err)
	}
	defer conn.Close()
	m, err := c.find(ctx, conn)
	if err != nil {
		return nil, nil, err
	}
	c.Data.JSON = o.Way.JSON()
	requests, err := m.Requests(c.Data)
	if err != nil {
		return nil, nil, err
	}
	o.Method, o.Messages = m.Path, requests.Messages
	o.ClientStreams, o.ServerStreams = m.Kind.CallerStreams(), m.Kind.ServerStreams()
	client, err := New(o)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, AnswerLimit)
	defer cancel()
	if err := client.Ready(ctx); err != nil {
		client.Close()
		return nil, nil, err
	}
	return m, client, nil
}

func (c Calls) find(ctx context.Context, server *grpc.ClientConn) (*method.Method, error) {
	if len(c.Files.Names) > 0 {
		return method.FromFiles(ctx, c.Files, c.Method)
	}
	if c.Known != nil {
		if m, err := method.FromRegistry(c.Known, c.Method); err == nil {
			return m, nil
		}
	}
	return method.FromServer(ctx, server, c.Method, AnswerLimit)
}
