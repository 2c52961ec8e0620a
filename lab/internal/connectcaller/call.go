package connectcaller

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Call makes one call.
func (c *Client) Call(ctx context.Context, call traffic.Call) traffic.Answer {
	ctx, cancel := call.Bound(ctx)
	defer cancel()
	answer := c.exchange(ctx, c.ways[call.Number%uint64(len(c.ways))], call)
	answer.Ended = time.Now() // what closing a connection costs is not in it
	return answer
}

func (c *Client) exchange(ctx context.Context, w way, call traffic.Call) traffic.Answer {
	messages := c.options.Messages(call.Number)
	if c.options.ClientStreams || c.options.ServerStreams {
		return c.stream(ctx, w, messages)
	}
	return c.unary(ctx, w, messages[0])
}

func (c *Client) unary(ctx context.Context, w way, encoded []byte) traffic.Answer {
	request := connect.NewRequest((*message)(&encoded))
	c.addTo(request.Header())
	response, err := w.calls.CallUnary(ctx, request)
	answer := failed(err)
	if err == nil {
		answer.Received = traffic.Volume{Messages: 1, Bytes: int64(*response.Msg)}
		answer.Worker = c.worker(response.Header(), response.Trailer())
	} else if inner, ok := errors.AsType[*connect.Error](err); ok {
		answer.Worker = c.worker(inner.Meta())
	}
	answer.Sent = traffic.Volume{Messages: 1, Bytes: int64(len(encoded))}
	return answer
}

func (c *Client) addTo(h http.Header) { maps.Copy(h, c.header) }

func failed(err error) traffic.Answer {
	if err == nil {
		return traffic.Answer{}
	}
	answer := traffic.Answer{Code: uint32(connect.CodeOf(err)), Message: err.Error()}
	inner, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return answer
	}
	answer.Message = withoutStream(inner.Message())
	if broken, ok := errors.AsType[*net.OpError](err); ok && broken.Op != "dial" {
		answer.Message = broken.Op + ": " + broken.Err.Error() // without the ports, which differ
	}
	return answer
}

// withoutStream leaves out the number of a stream, which differs from call to call:
// failures are counted by their text.
func withoutStream(text string) string {
	before, after, ok := strings.Cut(text, "stream ID ")
	if _, rest, found := strings.Cut(after, "; "); ok && found {
		return before + rest
	}
	return text
}

func (c *Client) worker(all ...http.Header) string {
	if c.options.WorkerKey == "" {
		return ""
	}
	for _, h := range all {
		if name := h.Get(c.options.WorkerKey); name != "" {
			return name
		}
	}
	return ""
}
