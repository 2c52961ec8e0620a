package caller

import (
	"context"
	"errors"
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
	if c.options.Strategy.kind != perCall {
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

// failed is the answer of a call that ended with an error, or well.
func failed(err error) traffic.Answer {
	if err == nil {
		return traffic.Answer{}
	}
	s := status.Convert(err)
	return traffic.Answer{Code: uint32(s.Code()), Message: s.Message()}
}

// worker reads who has answered.
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
	messages := c.options.Messages(call.Number)
	var sent traffic.Volume
	var answer traffic.Answer
	if c.options.ServerStreams && len(messages) > 1 {
		// Both ways at a time: a server that answers while it reads must not
		// wait for a caller that writes first.
		over := make(chan struct{})
		go func() {
			defer close(over)
			sent = send(stream, messages)
		}()
		answer = c.receive(stream)
		cancel() // a server that has ended may leave us writing
		<-over
	} else {
		sent = send(stream, messages)
		answer = c.receive(stream)
	}
	answer.Sent = sent
	if c.options.WorkerKey != "" {
		header, _ := stream.Header() // an error is that of the call, which has ended
		answer.Worker = c.worker(header, stream.Trailer())
	}
	return answer
}

// send sends what the server takes: when it has ended the call, receive tells why.
func send(stream grpc.ClientStream, messages [][]byte) (sent traffic.Volume) {
	for _, message := range messages {
		if stream.SendMsg(message) != nil {
			return sent
		}
		sent.Messages++
		sent.Bytes += int64(len(message))
	}
	_ = stream.CloseSend() // the same
	return sent
}

// receive reads the answers up to the end of the call.
func (c *Client) receive(stream grpc.ClientStream) (answer traffic.Answer) {
	var size int
	var first time.Time
	var got traffic.Volume
	for {
		err := stream.RecvMsg(&size)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				answer = failed(err)
			}
			break
		}
		got.Messages++
		got.Bytes += int64(size)
		if !c.options.ServerStreams {
			break // grpc-go has read the status, too
		}
		if first.IsZero() {
			first = time.Now()
		}
	}
	answer.Received, answer.First = got, first
	return answer
}
