package connectcaller

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// stream makes a call with any number of messages. On the wire the three kinds differ in
// nothing but who sends how many; connect-go lets this one pass over HTTP/1.1, too.
func (c *Client) stream(ctx context.Context, w way, messages [][]byte) traffic.Answer {
	// A stream that was not read to its end holds its place until its context ends.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := w.calls.CallClientStream(ctx).Conn()
	if err != nil {
		return failed(err)
	}
	c.addTo(conn.RequestHeader())
	answer, err := c.options.Exchange(connectStream{conn}, messages, cancel)
	_ = conn.CloseResponse() // it has ended
	if err == nil {
		answer.Worker = c.worker(conn.ResponseHeader(), conn.ResponseTrailer())
		return answer
	}
	failure := failed(err)
	answer.Code, answer.Message = failure.Code, failure.Message
	if inner, ok := errors.AsType[*connect.Error](err); ok { // the head may come yet, of a call that was given up
		answer.Worker = c.worker(inner.Meta())
	}
	return answer
}

// connectStream is a stream of connect-go.
type connectStream struct{ conn connect.StreamingClientConn }

// Send sends a message.
func (s connectStream) Send(encoded []byte) error { return s.conn.Send((*message)(&encoded)) }

// CloseSend says that there are no more.
func (s connectStream) CloseSend() error { return s.conn.CloseRequest() }

// Receive reads the size of an answer.
func (s connectStream) Receive() (bytes int, err error) {
	var n size
	err = s.conn.Receive(&n)
	return int(n), err
}
