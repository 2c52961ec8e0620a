package caller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	askEvery    = 100 * time.Millisecond // how often Ready dials where nobody listens
	mostRefusal = 16 << 10               // bytes of an answer that are read
	unknown     = "cabrank-lab-asks"     // a compression that no server has
)

// Ready returns when the server has shown that it understands the way, and opens the
// connections that live as long as the client; over HTTP/1.1 calls open all but the first.
// It sends one request that servers refuse before their handlers see it: without a message,
// and in a compression that there is not. (Of a method to which callers stream, connect-es
// starts the handler, which gets an error in place of a message.)
//
// Errors: one line: nobody listens until ctx ends; the server does not understand the
// way; it does not have the method.
func (c *connectClient) Ready(ctx context.Context) error {
	err := c.ready(ctx, c.ways[0])
	for _, w := range c.ways[1:] {
		if l, ok := w.over.(*lane); ok && err == nil {
			if _, err = l.open(ctx, nil); err != nil {
				err = c.unreachable(ctx, err)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("target %.80q %w", c.options.Target, err)
	}
	return nil
}

// ready asks, again while nobody listens.
func (c *connectClient) ready(ctx context.Context, w way) error {
	var last error
	for {
		err := c.ask(ctx, w)
		dialed, ok := errors.AsType[*net.OpError](err)
		switch {
		case last != nil && ctx.Err() != nil:
			return last // it says more than that the time is over
		case !ok || dialed.Op != "dial":
			return err
		case last == nil || !dialed.Timeout():
			last = err
		}
		select {
		case <-time.After(askEvery):
		case <-ctx.Done():
			return last
		}
	}
}

func (c *connectClient) ask(ctx context.Context, w way) error {
	ctx, cancel := context.WithCancel(ctx) // and with it a connection of its own
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, http.NoBody)
	if err != nil {
		return fmt.Errorf("is no address: %w", err)
	}
	c.addTo(request.Header)
	c.options.question(request.Header)
	response, err := w.over.Do(request)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostRefusal))
	if err != nil {
		return c.unreachable(ctx, err)
	}
	return c.judge(response, body)
}

// question completes the header of a request that is refused.
func (o Options) question(h http.Header) {
	h.Set("Content-Type", o.contentType())
	switch {
	case o.Way.protocol() != Connect:
		// Without te, which C-core asks for, and with what is no time, which grpc-js refuses:
		// neither looks at the compression of a stream without messages.
		h.Set("Grpc-Encoding", unknown)
		h.Set("Grpc-Timeout", unknown)
	case o.ClientStreams || o.ServerStreams:
		h.Set("Connect-Protocol-Version", "1")
		h.Set("Connect-Content-Encoding", unknown)
	default:
		h.Set("Connect-Protocol-Version", "1")
		h.Set("Content-Encoding", unknown)
	}
}

// contentType is that of requests, and of answers that are understood.
func (o Options) contentType() string {
	kind := "application/"
	switch {
	case o.Way.protocol() == GRPC:
		kind = "application/grpc+"
	case o.Way.protocol() == GRPCWeb:
		kind = "application/grpc-web+"
	case o.ClientStreams || o.ServerStreams:
		kind = "application/connect+"
	}
	return kind + o.Way.codec()
}

func (c *connectClient) judge(response *http.Response, body []byte) error {
	o := c.options
	got, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case response.ProtoMajor < 2 && o.Way.HTTP != one:
		return errors.New("speaks HTTP/1.1 alone: try http 1.1")
	case o.understood(response.StatusCode, got, body):
		return nil
	case response.StatusCode == http.StatusHTTPVersionNotSupported && o.Way.HTTP == one:
		return errors.New("takes no calls over HTTP/1.1 (HTTP status 505): try http 2")
	case response.StatusCode == http.StatusNotFound:
		return fmt.Errorf("has no %s for callers by %s (HTTP status 404)", o.Method, o.Way.name())
	}
	return fmt.Errorf("does not speak %s: %s was answered with HTTP status %d and the content type %.60q; %s",
		o.Way.spoken(), o.Method, response.StatusCode, got, o.Way.hint(response.StatusCode, got))
}

// hint says what to try where an answer is not of the protocol.
func (w Way) hint(status int, got string) string {
	grpc := strings.HasPrefix(got, "application/grpc")
	switch {
	case w.JSON() && (grpc && w.protocol() == GRPC || status == http.StatusUnsupportedMediaType):
		return "try the codec proto, or another protocol"
	case grpc || status == http.StatusUnsupportedMediaType:
		return "try the protocol grpc"
	}
	return "try another protocol"
}

func (o Options) understood(status int, got string, body []byte) bool {
	want := o.contentType()
	if o.Way.protocol() != Connect {
		return got == want || got == strings.TrimSuffix(want, "+"+o.Way.codec()) // as the default is written, too
	}
	if o.ClientStreams || o.ServerStreams {
		return got == want
	}
	var refusal struct {
		Code string `json:"code"`
	}
	return status == http.StatusOK && got == want ||
		got == "application/json" && json.Unmarshal(body, &refusal) == nil && refusal.Code != ""
}

func (c *connectClient) unreachable(ctx context.Context, err error) error {
	dialed, ok := errors.AsType[*net.OpError](err)
	version, other := "2", one
	if c.options.Way.HTTP == one {
		version, other = one, "2"
	}
	switch {
	case ok && dialed.Op == "dial", c.options.TLS != nil:
		return fmt.Errorf("cannot be reached: %w", err)
	case ctx.Err() != nil:
		return fmt.Errorf("does not answer over HTTP/%s: %w", version, err)
	}
	return fmt.Errorf("does not answer over HTTP/%s: %w; try http %s", version, err, other)
}
