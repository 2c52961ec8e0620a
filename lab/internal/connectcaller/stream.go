package connectcaller

import (
	"context"
	"errors"
	"io"
	"time"

	"connectrpc.com/connect"

	"github.com/cabrank/cabrank/lab/internal/traffic"
)

func (c *Client) stream(ctx context.Context, w way, messages [][]byte) traffic.Answer {
	// A stream that was not read to its end holds its place until its context ends.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	switch {
	case !c.options.ClientStreams:
		return c.serverStream(ctx, w, messages[0])
	case !c.options.ServerStreams:
		return c.clientStream(ctx, w, messages)
	}
	stream := w.calls.CallBidiStream(ctx)
	conn, err := stream.Conn()
	if err != nil {
		return failed(err)
	}
	c.addTo(conn.RequestHeader())
	if len(messages) < 2 {
		sent := send(conn, messages)
		answer := c.receive(conn)
		answer.Sent = sent
		return answer
	}
	// Both ways at a time: a server that answers while it reads must not wait for a
	// caller that writes first.
	var sent traffic.Volume
	over := make(chan struct{})
	go func() {
		defer close(over)
		sent = send(conn, messages)
	}()
	answer := c.receive(conn)
	cancel() // a server that has ended may leave us writing
	<-over
	answer.Sent = sent
	return answer
}

func (c *Client) serverStream(ctx context.Context, w way, encoded []byte) traffic.Answer {
	stream, err := w.calls.CallServerStream(ctx, c.request(encoded))
	if err != nil {
		return failed(err)
	}
	conn, err := stream.Conn()
	if err != nil {
		return failed(err)
	}
	answer := c.receive(conn)
	answer.Sent = traffic.Volume{Messages: 1, Bytes: int64(len(encoded))}
	return answer
}

func (c *Client) clientStream(ctx context.Context, w way, messages [][]byte) traffic.Answer {
	stream := w.calls.CallClientStream(ctx)
	c.addTo(stream.RequestHeader())
	var sent traffic.Volume
	for i := range messages {
		if stream.Send((*message)(&messages[i])) != nil {
			break // CloseAndReceive tells why
		}
		sent.Messages++
		sent.Bytes += int64(len(messages[i]))
	}
	response, err := stream.CloseAndReceive()
	answer := failed(err)
	answer.Sent = sent
	if err != nil {
		answer.Worker = c.workerOf(err)
		return answer
	}
	answer.Received = traffic.Volume{Messages: 1, Bytes: int64(*response.Msg)}
	answer.Worker = c.worker(response.Header(), response.Trailer())
	return answer
}

// send sends what the server takes: when it has ended the call, receive tells why.
func send(conn connect.StreamingClientConn, messages [][]byte) (sent traffic.Volume) {
	for i := range messages {
		if conn.Send((*message)(&messages[i])) != nil {
			return sent
		}
		sent.Messages++
		sent.Bytes += int64(len(messages[i]))
	}
	_ = conn.CloseRequest() // the same
	return sent
}

// receive reads the answers up to the end of the call.
func (c *Client) receive(conn connect.StreamingClientConn) (answer traffic.Answer) {
	var first time.Time
	var got traffic.Volume
	for {
		var n size
		err := conn.Receive(&n)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				answer = failed(err)
			}
			break
		}
		got.Messages++
		got.Bytes += int64(n)
		if first.IsZero() {
			first = time.Now()
		}
	}
	_ = conn.CloseResponse() // it has ended
	answer.Received, answer.First = got, first
	answer.Worker = c.worker(conn.ResponseHeader(), conn.ResponseTrailer())
	return answer
}
