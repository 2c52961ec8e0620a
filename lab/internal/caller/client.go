package caller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver/dns"

	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Options are what to call, and how.
type Options struct {
	// Target is host:port, unix:///path, or what else grpc-go takes, such as
	// dns://127.0.0.1:5353/name:port.
	Target string
	// Method is the full path, /package.Service/Method.
	Method string
	// ClientStreams and ServerStreams say of which kind the method is; a unary
	// one has neither.
	ClientStreams, ServerStreams bool
	// Messages returns the messages of a call by its number: one, or any number
	// if ClientStreams. Nobody may change them afterwards. It is called by many
	// goroutines at a time.
	Messages func(number uint64) [][]byte
	// Strategy is how calls share connections.
	Strategy Strategy
	// WorkerKey is the header or trailer that names who has answered; empty for
	// none.
	WorkerKey string
	// Metadata is sent with each call.
	Metadata metadata.MD
	// Credentials are those of TLS; nil means plaintext.
	Credentials credentials.TransportCredentials
	// DNSInterval is how often a name server is asked again at most; 0 leaves it
	// at DefaultDNSInterval. grpc-go has one such interval for the process: it
	// stays, and no other client may live that looks up names.
	DNSInterval time.Duration
}

// Client calls one method.
//
// Life: New; Ready if wanted; calls; Close when all have ended.
type Client struct {
	Dialer

	options Options
	desc    grpc.StreamDesc
	call    []grpc.CallOption
	with    []grpc.DialOption
	conns   []*grpc.ClientConn // none with PerCall
}

var (
	_ traffic.Client = (*Client)(nil)
	_ traffic.Dialer = (*Client)(nil)
)

// New returns a client. It opens no connection: see Ready.
//
// Errors: one line, for a method or a target that cannot be.
func New(o Options) (*Client, error) {
	service, method, ok := strings.Cut(strings.TrimPrefix(o.Method, "/"), "/")
	if !ok || service == "" || method == "" || o.Method[0] != '/' {
		return nil, fmt.Errorf("method %.80q: want /package.Service/Method", o.Method)
	}
	if o.Messages == nil {
		return nil, errors.New("internal error: a caller without messages")
	}
	if o.Credentials == nil {
		o.Credentials = insecure.NewCredentials()
	}
	if o.DNSInterval > 0 {
		dns.SetMinResolutionInterval(o.DNSInterval)
	}
	c := &Client{options: o, desc: grpc.StreamDesc{StreamName: method, ClientStreams: o.ClientStreams, ServerStreams: o.ServerStreams}}
	c.call = []grpc.CallOption{grpc.ForceCodecV2(codec{})}
	c.with = []grpc.DialOption{grpc.WithTransportCredentials(watched{o.Credentials, &c.Dialer}), grpc.WithContextDialer(c.dial), grpc.WithNoProxy()}
	if o.Strategy == RoundRobin {
		c.with = append(c.with, grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"round_robin":{}}]}`))
	}
	if err := c.prepare(); err != nil {
		return nil, err
	}
	return c, nil
}

// prepare makes the connections that live as long as the client. With one for each
// call it makes one all the same, so that a wrong target is told at once.
func (c *Client) prepare() error {
	for range max(c.options.Strategy.Lasting(), 1) {
		conn, err := c.open()
		if err != nil {
			c.Close()
			return fmt.Errorf("target %.80q: %w", c.options.Target, err)
		}
		c.conns = append(c.conns, conn)
	}
	if c.options.Strategy == PerCall {
		c.Close()
		c.conns = nil
	}
	return nil
}

func (c *Client) open() (*grpc.ClientConn, error) {
	return grpc.NewClient(c.options.Strategy.target(c.options.Target), c.with...)
}

// Ready opens the connections that live as long as the client, and returns when all can
// be used. Otherwise the first calls open them, and wait for that.
//
// Errors: one line that says why the last connection failed: when ctx ends, or at once
// where another attempt would fail for the same reason.
func (c *Client) Ready(ctx context.Context) error {
	for _, conn := range c.conns {
		conn.Connect()
	}
	for _, conn := range c.conns {
		for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
			if state == connectivity.TransientFailure && c.hopeless() {
				return c.unreachable(nil)
			}
			if !conn.WaitForStateChange(ctx, state) {
				return c.unreachable(ctx.Err())
			}
			if state == connectivity.Idle {
				conn.Connect()
			}
		}
	}
	return nil
}

func (c *Client) unreachable(err error) error {
	switch last := c.last.Load(); {
	case last != nil:
		err = *last
	case c.opened.Load() > 0:
		err = errors.New("connections were opened and came to nothing")
	}
	return fmt.Errorf("target %.80q cannot be reached: %w", c.options.Target, err)
}

// String describes how the client calls.
func (c *Client) String() string {
	text := "grpc-go " + grpc.Version + ", connections " + c.options.Strategy.String()
	if secure(c.options.Credentials) {
		text += " with TLS"
	}
	if c.options.Strategy != RoundRobin {
		return text
	}
	if c.options.DNSInterval > 0 {
		return fmt.Sprintf("%s, DNS asked again every %v at most", text, c.options.DNSInterval)
	}
	return fmt.Sprintf("%s, DNS asked again every %v at most (the default)", text, DefaultDNSInterval)
}

// Close ends all connections. Nobody may call any more.
func (c *Client) Close() {
	for _, conn := range c.conns {
		conn.Close()
	}
}
