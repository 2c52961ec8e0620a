package caller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// connectClient calls one method.
//
// Life: New; Ready if wanted; calls; Close when all have ended.
type connectClient struct {
	Dialer

	options   Options
	host, url string
	header    http.Header     // of each call
	transport *http.Transport // of HTTP/2 it opens connections, and keeps none
	ways      []way           // in turn
}

// way is what calls go through: a connection of HTTP/2, all of HTTP/1.1, or, with a
// connection for each call, what finds that.
type way struct {
	over  connect.HTTPClient
	calls *connect.Client[message, size]
}

func newConnect(o Options) (*connectClient, error) {
	network, address, host, ok := place(o.Target)
	switch {
	case !ok:
		return nil, fmt.Errorf("target %.80q: want host:port or unix:///path for calls by %s", o.Target, o.Way.name())
	case o.Way.HTTP == one && o.ClientStreams && o.ServerStreams:
		return nil, fmt.Errorf("%s streams both ways, which needs HTTP/2: leave http 1.1 out", o.Method)
	}
	c := &connectClient{options: o, host: host, url: "http://" + host + o.Method, header: header(o)}
	if o.TLS != nil {
		c.url = "https://" + host + o.Method
	}
	c.transport = c.newTransport(func(ctx context.Context, _, _ string) (net.Conn, error) {
		return c.Dial(ctx, network, address)
	})
	switch {
	case o.Strategy == PerCall:
		c.add(connector(c.connect))
	case o.Way.HTTP == one:
		c.add(pool{c.transport})
	default:
		for range o.Strategy.Lasting() {
			c.add(newLane(c.connect))
		}
	}
	return c, nil
}

func header(o Options) http.Header {
	h := http.Header{}
	for name, values := range o.Metadata {
		for _, value := range values {
			if strings.HasSuffix(name, "-bin") {
				value = connect.EncodeBinaryHeader([]byte(value))
			}
			h.Add(name, value)
		}
	}
	for name, values := range h {
		h[name] = slices.Clip(values) // calls share them: who appends gets a copy
	}
	return h
}

func (c *connectClient) newTransport(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	t := &http.Transport{
		DialContext: dial, TLSClientConfig: c.options.TLS.Clone(), DisableCompression: true, Protocols: &http.Protocols{},
	}
	switch {
	case c.options.Way.HTTP == one:
		t.Protocols.SetHTTP1(true)
		t.MaxConnsPerHost = c.options.Strategy.Lasting()
		t.MaxIdleConnsPerHost = c.options.Strategy.Lasting()
	case c.options.TLS != nil:
		t.Protocols.SetHTTP2(true)
	default:
		t.Protocols.SetUnencryptedHTTP2(true)
	}
	return t
}

func (c *connectClient) add(over connect.HTTPClient) {
	with := []connect.ClientOption{connect.WithCodec(connectCodec{c.options.Way.codec()}), connect.WithAcceptCompression("gzip", nil, nil)}
	switch c.options.Way.protocol() {
	case GRPC:
		with = append(with, connect.WithGRPC())
	case GRPCWeb:
		with = append(with, connect.WithGRPCWeb())
	}
	c.ways = append(c.ways, way{over, connect.NewClient[message, size](over, c.url, with...)})
}

func (c *connectClient) connect(ctx context.Context) (*http.ClientConn, error) {
	scheme, _, _ := strings.Cut(c.url, ":")
	host := c.host
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(host, "80") // of a Unix socket
	}
	return c.transport.NewClientConn(ctx, scheme, host)
}

func (c *connectClient) String() string {
	words := "connect-go " + connect.Version + ", " + c.options.Way.String() + ", connections " + c.options.Strategy.String()
	if c.options.TLS != nil {
		words += " with TLS"
	}
	return words
}

func (c *connectClient) Close() {
	for _, w := range c.ways {
		if over, ok := w.over.(interface{ close() }); ok {
			over.close()
		}
	}
}

// place takes a target apart: what is dialed, and the host of the URL.
func place(target string) (network, address, host string, ok bool) {
	if path, is := strings.CutPrefix(target, "unix:"); is {
		path = strings.TrimPrefix(path, "//")
		return "unix", path, "localhost", path != ""
	}
	_, port, err := net.SplitHostPort(target)
	return "tcp", target, target, err == nil && port != "" && !strings.Contains(target, "/")
}

func (c *connectClient) Call(ctx context.Context, call traffic.Call) traffic.Answer {
	ctx, cancel := call.Bound(ctx)
	defer cancel()
	answer := c.exchange(ctx, c.ways[call.Number%uint64(len(c.ways))], call)
	answer.Ended = time.Now() // what closing a connection costs is not in it
	return answer
}

func (c *connectClient) exchange(ctx context.Context, w way, call traffic.Call) traffic.Answer {
	messages := c.options.Messages(call.Number)
	switch {
	case messages == nil:
		return noRequest()
	case c.options.ClientStreams || c.options.ServerStreams:
		return c.stream(ctx, w, messages)
	}
	return c.unary(ctx, w, messages[0])
}

func (c *connectClient) unary(ctx context.Context, w way, encoded []byte) traffic.Answer {
	request := connect.NewRequest((*message)(&encoded))
	c.addTo(request.Header())
	response, err := w.calls.CallUnary(ctx, request)
	answer := failed(err)
	if err == nil {
		answer.Received = traffic.Volume{Messages: 1, Bytes: int64(*response.Msg)}
		answer.Worker = c.options.worker(http.CanonicalHeaderKey, response.Header(), response.Trailer())
	} else if inner, ok := errors.AsType[*connect.Error](err); ok {
		answer.Worker = c.options.worker(http.CanonicalHeaderKey, inner.Meta())
	}
	answer.Sent = traffic.Volume{Messages: 1, Bytes: int64(len(encoded))}
	return answer
}

func (c *connectClient) addTo(h http.Header) { maps.Copy(h, c.header) }

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

func (c *connectClient) stream(ctx context.Context, w way, messages [][]byte) traffic.Answer {
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
		answer.Worker = c.options.worker(http.CanonicalHeaderKey, conn.ResponseHeader(), conn.ResponseTrailer())
		return answer
	}
	failure := failed(err)
	answer.Code, answer.Message = failure.Code, failure.Message
	if inner, ok := errors.AsType[*connect.Error](err); ok { // the head may come yet, of a call that was given up
		answer.Worker = c.options.worker(http.CanonicalHeaderKey, inner.Meta())
	}
	return answer
}

// open begins a call. On the wire its kinds differ in nothing but who sends how many messages,
// and that of a client's stream passes over HTTP/1.1, too. But a call with one message goes as
// connect-go has it for them: it can send that again, where a connection ends before its
// server has taken it.
func (c *connectClient) open(ctx context.Context, w way, messages [][]byte) (connect.StreamingClientConn, Stream, error) {
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

func (sentStream) Send([]byte) error { return nil }

func (sentStream) CloseSend() error { return nil }

type connectStream struct{ conn connect.StreamingClientConn }

func (s connectStream) Send(encoded []byte) error { return s.conn.Send((*message)(&encoded)) }

func (s connectStream) CloseSend() error { return s.conn.CloseRequest() }

func (s connectStream) Receive() (bytes int, err error) {
	var n size
	err = s.conn.Receive(&n)
	return int(n), err
}

// message is a request, encoded.
type message []byte

// size is how many bytes an answer had.
type size int

// connectCodec sends bytes as they are, and counts those of answers. Its name makes the content
// type.
//
// Shape: a request is a *message, an answer a *size.
// Concurrency: connect-go takes what Marshal returns for its own and writes into it later;
// so both copy.
type connectCodec struct{ name string }

func (c connectCodec) Name() string { return c.name }

func (c connectCodec) Marshal(v any) ([]byte, error) { return c.MarshalAppend(nil, v) }

// MarshalAppend spares connect-go a buffer for each message: it looks for this method.
func (connectCodec) MarshalAppend(dst []byte, v any) ([]byte, error) {
	m, ok := v.(*message)
	if !ok {
		return nil, fmt.Errorf("internal error: a request of the type %T", v)
	}
	return append(dst, *m...), nil
}

func (connectCodec) Unmarshal(data []byte, v any) error {
	switch v := v.(type) {
	case *size:
		*v = size(len(data))
		return nil
	case proto.Message: // the status of a gRPC call that failed
		return proto.Unmarshal(data, v)
	default:
		return fmt.Errorf("internal error: an answer of the type %T", v)
	}
}
