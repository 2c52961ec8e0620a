package caller

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver/dns"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// grpcClient calls one method.
//
// Life: New; Ready if wanted; calls; Close when all have ended.
type grpcClient struct {
	Dialer

	options Options
	desc    grpc.StreamDesc
	call    []grpc.CallOption
	with    []grpc.DialOption
	conns   []*grpc.ClientConn // none with PerCall
}

func newGRPC(o Options) (*grpcClient, error) {
	if o.DNSInterval > 0 {
		dns.SetMinResolutionInterval(o.DNSInterval)
	}
	c := &grpcClient{options: o, desc: grpc.StreamDesc{ClientStreams: o.ClientStreams, ServerStreams: o.ServerStreams}}
	c.call = []grpc.CallOption{grpc.ForceCodecV2(grpcCodec{})}
	c.with = []grpc.DialOption{grpc.WithTransportCredentials(watched{o.credentials(), &c.Dialer}), grpc.WithContextDialer(c.dial), grpc.WithNoProxy()}
	if o.Strategy == RoundRobin {
		c.with = append(c.with, grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"round_robin":{}}]}`))
	}
	for range o.Strategy.Lasting() {
		conn, err := c.open()
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("target %.80q: %w", o.Target, err)
		}
		c.conns = append(c.conns, conn)
	}
	return c, nil
}

func (c *grpcClient) open() (*grpc.ClientConn, error) {
	return grpc.NewClient(c.options.Strategy.target(c.options.Target), c.with...)
}

// Ready opens the connections that live as long as the client, and returns when all can
// be used. Otherwise the first calls open them, and wait for that.
//
// Errors: one line that says why the last connection failed: when ctx ends, or at once
// where another attempt would fail for the same reason.
func (c *grpcClient) Ready(ctx context.Context) error {
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

func (c *grpcClient) unreachable(err error) error {
	switch last := c.last.Load(); {
	case last != nil:
		err = *last
	case c.opened.Load() > 0:
		err = errors.New("connections were opened and came to nothing")
	}
	return fmt.Errorf("target %.80q cannot be reached: %w", c.options.Target, err)
}

func (c *grpcClient) String() string {
	text := "grpc-go " + grpc.Version + ", connections " + c.options.Strategy.String()
	if c.options.TLS != nil {
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

func (c *grpcClient) Close() {
	for _, conn := range c.conns {
		conn.Close()
	}
}

func (c *grpcClient) Call(ctx context.Context, call traffic.Call) traffic.Answer {
	ctx, cancel := call.Bound(ctx)
	defer cancel()
	if c.options.Metadata != nil {
		ctx = metadata.NewOutgoingContext(ctx, c.options.Metadata)
	}
	if c.options.Strategy != PerCall {
		return c.exchange(ctx, cancel, c.conns[call.Number%uint64(len(c.conns))], call)
	}
	conn, err := c.open()
	if err != nil {
		return failedGRPC(err)
	}
	answer := c.exchange(ctx, cancel, conn, call)
	answer.Ended = time.Now()
	conn.Close()
	return answer
}

// exchange makes a call of any kind: grpc-go's Invoke, too, is a stream with one message each
// way. A stream that was not read to its end holds its place until cancel.
func (c *grpcClient) exchange(ctx context.Context, cancel func(), conn *grpc.ClientConn, call traffic.Call) traffic.Answer {
	messages := c.options.Messages(call.Number)
	if messages == nil {
		return noRequest()
	}
	stream, err := conn.NewStream(ctx, &c.desc, c.options.Method, c.call...)
	if err != nil {
		return failedGRPC(err)
	}
	answer, err := c.options.Exchange(&grpcStream{ClientStream: stream, many: c.options.ServerStreams}, messages, cancel)
	if err != nil {
		failure := failedGRPC(err)
		answer.Code, answer.Message = failure.Code, failure.Message
	}
	if c.options.WorkerKey != "" {
		header, _ := stream.Header() // an error is that of the call, which has ended
		answer.Worker = c.options.worker(strings.ToLower, header, stream.Trailer())
	}
	return answer
}

func failedGRPC(err error) traffic.Answer {
	s := status.Convert(err)
	return traffic.Answer{Code: uint32(s.Code()), Message: s.Message()}
}

type grpcStream struct {
	grpc.ClientStream

	many, over bool
}

func (s *grpcStream) Send(message []byte) error { return s.SendMsg(message) }

func (s *grpcStream) Receive() (size int, err error) {
	if s.over {
		return 0, io.EOF
	}
	err = s.RecvMsg(&size)
	s.over = !s.many // behind a single answer grpc-go has read the status, too
	return size, err
}

// grpcCodec sends bytes as they are, and counts those of answers. It is registered nowhere.
//
// Shape: a request is a []byte, an answer an *int.
type grpcCodec struct{}

func (grpcCodec) Marshal(v any) (mem.BufferSlice, error) {
	message, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("internal error: a request of the type %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(message)}, nil
}

func (grpcCodec) Unmarshal(data mem.BufferSlice, v any) error {
	size, ok := v.(*int)
	if !ok {
		return fmt.Errorf("internal error: an answer of the type %T", v)
	}
	*size = data.Len()
	return nil
}

// Name makes the content type application/grpc, as grpc-go sends it without a grpcCodec
// of the user's.
func (grpcCodec) Name() string { return "" }

// watched are credentials that keep why a handshake failed: grpc-go has it in a text
// alone, of a call.
type watched struct {
	credentials.TransportCredentials

	dialer *Dialer
}

func (w watched) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := w.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		err = fmt.Errorf("TLS handshake: %w", err)
		w.dialer.last.Store(&err)
	}
	return conn, info, err
}

func (w watched) Clone() credentials.TransportCredentials {
	return watched{w.TransportCredentials.Clone(), w.dialer}
}

// hopeless reports whether the last connection failed for a reason that will be the same
// at the next attempt: one side does not speak TLS, or one does not trust the other.
func (d *Dialer) hopeless() bool {
	last := d.last.Load()
	if last == nil {
		return false
	}
	var untrusted *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	var alert tls.AlertError
	return errors.As(*last, &untrusted) || errors.As(*last, &plain) || errors.As(*last, &alert) || errors.Is(*last, io.EOF)
}
