package caller

import (
	"context"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Call makes one call.
func (c *Client) Call(ctx context.Context, call traffic.Call) traffic.Answer {
	ctx, cancel := call.Bound(ctx)
	defer cancel()
	if c.options.Metadata != nil {
		ctx = metadata.NewOutgoingContext(ctx, c.options.Metadata)
	}
	if c.options.Strategy != PerCall {
		return c.exchange(ctx, c.conns[call.Number%uint64(len(c.conns))], call)
	}
	conn, err := c.open()
	if err != nil {
		return failed(err)
	}
	answer := c.exchange(ctx, conn, call)
	answer.Ended = time.Now()
	conn.Close()
	return answer
}

func (c *Client) exchange(ctx context.Context, conn *grpc.ClientConn, call traffic.Call) traffic.Answer {
	if c.options.ClientStreams || c.options.ServerStreams {
		return c.stream(ctx, conn, call)
	}
	return c.unary(ctx, conn, call)
}

func (c *Client) unary(ctx context.Context, conn *grpc.ClientConn, call traffic.Call) traffic.Answer {
	message := c.options.Messages(call.Number)[0]
	options := c.call
	var header, trailer metadata.MD
	if c.options.WorkerKey != "" {
		options = append(slices.Clip(options), grpc.Header(&header), grpc.Trailer(&trailer))
	}
	var size int
	err := conn.Invoke(ctx, c.options.Method, message, &size, options...)
	answer := failed(err)
	if err == nil {
		answer.Received = traffic.Volume{Messages: 1, Bytes: int64(size)}
	}
	answer.Sent = traffic.Volume{Messages: 1, Bytes: int64(len(message))}
	answer.Worker = c.worker(header, trailer)
	return answer
}

func failed(err error) traffic.Answer {
	if err == nil {
		return traffic.Answer{}
	}
	s := status.Convert(err)
	return traffic.Answer{Code: uint32(s.Code()), Message: s.Message()}
}

func (c *Client) worker(header, trailer metadata.MD) string {
	if c.options.WorkerKey == "" {
		return ""
	}
	for _, md := range []metadata.MD{header, trailer} {
		if names := md.Get(c.options.WorkerKey); len(names) > 0 {
			return names[0]
		}
	}
	return ""
}

func (c *Client) stream(ctx context.Context, conn *grpc.ClientConn, call traffic.Call) traffic.Answer {
	// A stream that was not read to its end holds its place until its context ends.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := conn.NewStream(ctx, &c.desc, c.options.Method, c.call...)
	if err != nil {
		return failed(err)
	}
	answer, err := c.options.Exchange(&grpcStream{ClientStream: stream, many: c.options.ServerStreams}, c.options.Messages(call.Number), cancel)
	if err != nil {
		failure := failed(err)
		answer.Code, answer.Message = failure.Code, failure.Message
	}
	if c.options.WorkerKey != "" {
		header, _ := stream.Header() // an error is that of the call, which has ended
		answer.Worker = c.worker(header, stream.Trailer())
	}
	return answer
}

type grpcStream struct {
	grpc.ClientStream

	many, over bool
}

// Send sends a message.
func (s *grpcStream) Send(message []byte) error { return s.SendMsg(message) }

// Receive reads the size of an answer.
func (s *grpcStream) Receive() (size int, err error) {
	if s.over {
		return 0, io.EOF
	}
	err = s.RecvMsg(&size)
	s.over = !s.many // behind a single answer grpc-go has read the status, too
	return size, err
}
