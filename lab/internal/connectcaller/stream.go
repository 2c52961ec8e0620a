package connectcaller

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

func (c *Client) stream(ctx context.Context, w way, messages [][]byte) traffic.Answer {
	// A stream that was not read to its end holds its place until its context ends.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, calls, err := c.open(ctx, w, messages)
	if err != nil {
		return failed(err)
	}
	answer, err := c.options.Exchange(calls, messages, cancel)
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

// open begins a call. On the wire its kinds differ in nothing but who sends how many messages,
// and that of a client's stream passes over HTTP/1.1, too. But a call with one message goes as
// connect-go has it for them: it can send that again, where a connection ends before its
// server has taken it.
func (c *Client) open(ctx context.Context, w way, messages [][]byte) (connect.StreamingClientConn, caller.Stream, error) {
	if c.options.ClientStreams {
		conn, err := w.calls.CallClientStream(ctx).Conn()
		if err != nil {
			return nil, nil, err
		}
		c.addTo(conn.RequestHeader())
		return conn, connectStream{conn}, nil
	}
	request := connect.NewRequest((*message)(&messages[0]))
	c.addTo(request.Header())
	answers, err := w.calls.CallServerStream(ctx, request)
	if err != nil {
		return nil, nil, err
	}
	conn, err := answers.Conn()
	return conn, sentStream{connectStream{conn}}, err
}

// sentStream is a stream whose message has been sent.
type sentStream struct{ connectStream }

// Send has nothing left to do.
func (sentStream) Send([]byte) error { return nil }

// CloseSend has nothing left to do.
func (sentStream) CloseSend() error { return nil }

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
