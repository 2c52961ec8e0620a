package connectcaller

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Options are what to call, and how.
type Options struct {
	// Options are those of the other caller. Target is host:port or unix:///path;
	// Messages are of the codec of the way; Credentials are those of plain gRPC, and
	// DNSInterval belongs to it alone.
	caller.Options

	// Way is how calls are written.
	Way Way
	// TLS is how calls that are not plain gRPC are secured; nil means clear text.
	TLS *tls.Config
}

// Caller is a client for some way.
type Caller interface {
	traffic.Client
	traffic.Dialer
	fmt.Stringer
	// Ready opens what connections it can, and returns when calls can be made.
	Ready(ctx context.Context) error
	// Close ends all connections. Nobody may call any more.
	Close()
}

// For returns the client for a way: grpc-go's if it is plain gRPC.
//
// Errors: one line, for what cannot be.
func For(o Options) (Caller, error) { //nolint:ireturn // one of two
	if o.Way.Plain() {
		return caller.New(o.Options)
	}
	return New(o)
}

// Client calls one method.
//
// Life: New; Ready if wanted; calls; Close when all have ended.
type Client struct {
	caller.Dialer

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

var (
	_ traffic.Client = (*Client)(nil)
	_ traffic.Dialer = (*Client)(nil)
	_ Caller         = (*Client)(nil)
	_ Caller         = (*caller.Client)(nil)
)

// New returns a client. It opens no connection: see Ready.
//
// Errors: one line, for a method or a target that cannot be, and for what HTTP/1.1 cannot.
func New(o Options) (*Client, error) {
	network, address, host, ok := place(o.Target)
	switch {
	case !ok:
		return nil, fmt.Errorf("target %.80q: want host:port or unix:///path for calls by %s", o.Target, o.Way.name())
	case o.Way.HTTP == one && o.ClientStreams && o.ServerStreams:
		return nil, fmt.Errorf("%s streams both ways, which needs HTTP/2: leave http 1.1 out", o.Method)
	case o.Messages == nil:
		return nil, errors.New("internal error: a caller without messages")
	}
	if err := o.Way.Check(o.Strategy); err != nil {
		return nil, err
	}
	c := &Client{options: o, host: host, url: "http://" + host + o.Method, header: header(o)}
	if o.TLS != nil {
		c.url = "https://" + host + o.Method
	}
	c.transport = c.newTransport(func(ctx context.Context, _, _ string) (net.Conn, error) {
		return c.Dial(ctx, network, address)
	})
	switch {
	case o.Strategy == caller.PerCall:
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

// header is the metadata as HTTP has it.
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

// newTransport knows how connections are opened.
func (c *Client) newTransport(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
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

// add adds what calls go through.
func (c *Client) add(over connect.HTTPClient) {
	with := []connect.ClientOption{connect.WithCodec(codec{c.options.Way.codec()}), connect.WithAcceptCompression("gzip", nil, nil)}
	switch c.options.Way.protocol() {
	case GRPC:
		with = append(with, connect.WithGRPC())
	case GRPCWeb:
		with = append(with, connect.WithGRPCWeb())
	}
	c.ways = append(c.ways, way{over, connect.NewClient[message, size](over, c.url, with...)})
}

func (c *Client) connect(ctx context.Context) (*http.ClientConn, error) {
	scheme, _, _ := strings.Cut(c.url, ":")
	host := c.host
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(host, "80") // of a Unix socket
	}
	return c.transport.NewClientConn(ctx, scheme, host)
}

// String describes how the client calls.
func (c *Client) String() string {
	words := "connect-go " + connect.Version + ", " + c.options.Way.String() + ", connections " + c.options.Strategy.String()
	if c.options.TLS != nil {
		words += " with TLS"
	}
	return words
}

// Close ends all connections. Nobody may call any more.
func (c *Client) Close() {
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
