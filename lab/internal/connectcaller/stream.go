package connectcaller

import (
	"context"
	"errors"
	"io"
	"time"

	"connectrpc.com/connect"

	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// stream makes a call with any number of messages. On the wire the three kinds differ in
// nothing but who sends how many; connect-go lets this one pass over HTTP/1.1, too.
func (c *Client) stream(ctx context.Context, w way, messages [][]byte) (answer traffic.Answer) {
	// A stream that was not read to its end holds its place until its context ends.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := w.calls.CallClientStream(ctx).Conn()
	if err != nil {
		return failed(err)
	}
	c.addTo(conn.RequestHeader())
	var sent traffic.Volume
	if c.options.ServerStreams && len(messages) > 1 {
		// Both ways at a time: a server that answers while it reads must not wait for a
		// caller that writes first.
		over := make(chan struct{})
		go func() {
			defer close(over)
			sent = send(conn, messages)
		}()
		answer = c.receive(conn)
		cancel() // a server that has ended may leave us writing
		<-over
	} else {
		sent = send(conn, messages)
		answer = c.receive(conn)
	}
	answer.Sent = sent
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
		if first.IsZero() && c.options.ServerStreams {
			first = time.Now()
		}
	}
	_ = conn.CloseResponse() // it has ended
	answer.Received, answer.First = got, first
	answer.Worker = c.worker(conn.ResponseHeader(), conn.ResponseTrailer())
	return answer
}
