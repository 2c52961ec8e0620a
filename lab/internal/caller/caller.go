package caller

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

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
	// if ClientStreams, of the codec of the way; nil, and the call fails, if there are none
	// for that number. Nobody may change them afterwards. It is called by many goroutines at a
	// time.
	Messages func(number uint64) [][]byte
	// Strategy is how calls share connections.
	Strategy Strategy
	// WorkerKey is the header or trailer that names who has answered; empty for
	// none.
	WorkerKey string
	// Metadata is sent with each call.
	Metadata metadata.MD
	// Way is how calls are written. What it says but plain gRPC takes host:port and
	// unix:///path alone as targets.
	Way Way
	// TLS is how calls are secured; nil means clear text.
	TLS *tls.Config
	// DNSInterval is how often a name server is asked again at most; 0 leaves it
	// at DefaultDNSInterval. grpc-go has one such interval for the process: it
	// stays, and no other client may live that looks up names.
	DNSInterval time.Duration
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

// New returns the client for a way: grpc-go's if it is plain gRPC. It opens no connection: see
// Ready.
//
// Errors: one line, for a method or a target that cannot be, and for what HTTP/1.1 cannot.
func New(o Options) (Caller, error) { //nolint:ireturn // one of two
	service, method, ok := strings.Cut(strings.TrimPrefix(o.Method, "/"), "/")
	switch {
	case !ok || service == "" || method == "" || o.Method[0] != '/':
		return nil, fmt.Errorf("method %.80q: want /package.Service/Method", o.Method)
	case o.Messages == nil:
		return nil, errors.New("internal error: a caller without messages")
	case o.Way.Plain():
		return newGRPC(o)
	}
	return newConnect(o)
}

// credentials are those of the TLS.
func (o *Options) credentials() credentials.TransportCredentials {
	if o.TLS == nil {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(o.TLS)
}

// noRequest is the answer to a call that has no messages to send.
func noRequest() traffic.Answer {
	return traffic.Answer{Code: uint32(codes.InvalidArgument), Message: "a value of the template fits into no request"}
}

// worker is who has answered, by headers and trailers; canonical is how their names are written.
func (o *Options) worker(canonical func(string) string, all ...map[string][]string) string {
	if o.WorkerKey == "" {
		return ""
	}
	key := canonical(o.WorkerKey)
	for _, values := range all {
		if found := values[key]; len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// Stream is a call of a method in which either side sends any number of messages.
//
// Errors: of Receive: io.EOF is the end of a call that went well.
// Concurrency: one goroutine sends while another receives.
type Stream interface {
	// Send sends an encoded message.
	Send(message []byte) error
	// CloseSend says that there are no more.
	CloseSend() error
	// Receive waits for an answer and returns its bytes.
	Receive() (size int, err error)
}

// Exchange sends messages and reads the answers up to the end of the call, whose error it
// returns. cancel ends the call.
func (o *Options) Exchange(s Stream, messages [][]byte, cancel func()) (answer traffic.Answer, err error) {
	if !o.ServerStreams || len(messages) < 2 {
		sent := send(s, messages)
		answer, err = o.receive(s)
		answer.Sent = sent
		return answer, err
	}
	// Both ways at a time: a server that answers while it reads must not wait for a
	// caller that writes first.
	sent := make(chan traffic.Volume, 1)
	go func() { sent <- send(s, messages) }()
	answer, err = o.receive(s)
	cancel() // a server that has ended may leave us writing
	answer.Sent = <-sent
	return answer, err
}

// send sends what the server takes: when it has ended the call, receive tells why.
func send(s Stream, messages [][]byte) (sent traffic.Volume) {
	for _, message := range messages {
		if s.Send(message) != nil {
			return sent
		}
		sent.Messages++
		sent.Bytes += int64(len(message))
	}
	_ = s.CloseSend() // the same
	return sent
}

func (o *Options) receive(s Stream) (answer traffic.Answer, err error) {
	for {
		size, err := s.Receive()
		if errors.Is(err, io.EOF) {
			return answer, nil
		} else if err != nil {
			return answer, err
		}
		answer.Received.Messages++
		answer.Received.Bytes += int64(size)
		if o.ServerStreams && answer.First.IsZero() {
			answer.First = time.Now()
		}
	}
}

// Dialer opens connections and counts them.
type Dialer struct {
	net    net.Dialer
	opened atomic.Int64
	last   atomic.Pointer[error] // why a connection could not be opened
}

// Opened returns how many connections were opened so far.
func (d *Dialer) Opened() int64 { return d.opened.Load() }

// dial opens a connection to an address as grpc-go writes it: host:port, or a path
// with unix: before it.
func (d *Dialer) dial(ctx context.Context, address string) (net.Conn, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return d.Dial(ctx, "unix", strings.TrimPrefix(path, "//"))
	}
	return d.Dial(ctx, "tcp", address)
}

// Dial opens a connection.
func (d *Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.net.DialContext(ctx, network, address)
	if err != nil {
		d.last.Store(&err)
		return nil, err
	}
	d.opened.Add(1)
	return conn, nil
}
