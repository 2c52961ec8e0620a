// Package caller makes calls for the loads of package traffic: gRPC with grpc-go, which is
// what users run; Connect, gRPC-Web and gRPC with connect-go; and plain requests to a
// gateway (Gateway).
//
// Open finds a method and returns a Caller for it that can call: with grpc-go for what is
// plain gRPC, with connect-go for all else. Its Strategy says how calls share connections:
// all on one, on a pool, each on a new one, or spread by grpc-go's own round robin over the
// addresses of a name. Calls of all four kinds send the bytes that they are given; answers
// are counted and not decoded.
//
// It uses the settings that grpc-go, connect-go and net/http have by default, but for these:
// it knows no HTTP proxy, for a load through one would measure that; it dials by itself, to
// count connections; it takes no compressed answers; and a connection of HTTP/2 is full when
// the server says so, and then calls wait.
package caller

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/cabrank/cabrank/lab/internal/method"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Options are what to call, and how.
type Options struct {
	// Target is host:port, unix:///path, or what else grpc-go takes, such as
	// dns://127.0.0.1:5353/name:port.
	Target string
	Method string // the full path, /package.Service/Method
	// ClientStreams and ServerStreams say of which kind the method is; a unary one has neither.
	ClientStreams, ServerStreams bool
	// Messages returns the messages of a call by its number: one, or any number if ClientStreams,
	// of the codec of the way; nil, and the call fails, if there are none for that number. Nobody
	// may change them afterwards. It is called by many goroutines at a time.
	Messages  func(number uint64) [][]byte `json:"-"`
	Strategy  Strategy                     // how calls share connections
	WorkerKey string                       // the header or trailer that names who has answered; empty for none
	Metadata  metadata.MD                  // sent with each call
	// Way is how calls are written. What it says but plain gRPC takes host:port and
	// unix:///path alone as targets.
	Way Way
	TLS *tls.Config `json:"-"` // nil means clear text
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

// New returns the client for a way: grpc-go's if it is plain gRPC. It opens no connection.
//
// Errors: one line, for a target that cannot be, and for what HTTP/1.1 cannot.
func New(o Options) (Caller, error) { //nolint:ireturn // one of two
	if o.Way.Plain() {
		return newGRPC(o)
	}
	return newConnect(o)
}

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

// AnswerLimit is how long a target may take to be reached, and to describe itself.
const AnswerLimit = 10 * time.Second

// Calls are of which method calls are, and with what in them.
type Calls struct {
	// Method is package.Service/Method. Files describe it, or else Known if it is there;
	// otherwise the target is asked by reflection.
	Method string
	Files  method.Files
	Known  *protoregistry.Files `json:"-"`
	Data   method.Data          // the requests; whether they are JSON is said by the way
}

// Open finds the method, makes its requests, and returns the client for them when it can call:
// what o says of method and messages is filled in.
//
// Errors: one line that says what and where, and what to do instead.
func Open(ctx context.Context, o Options, c Calls) (*method.Method, Caller, error) { //nolint:ireturn // one of two
	conn, err := grpc.NewClient(o.Target, grpc.WithTransportCredentials(o.credentials()), grpc.WithNoProxy())
	if err != nil {
		return nil, nil, fmt.Errorf("%.80q is no address: %w", o.Target, err)
	}
	defer conn.Close()
	m, err := c.find(ctx, conn)
	if err != nil {
		return nil, nil, err
	}
	c.Data.JSON = o.Way.JSON()
	requests, err := m.Requests(c.Data)
	if err != nil {
		return nil, nil, err
	}
	o.Method, o.Messages = m.Path, requests.Messages
	o.ClientStreams, o.ServerStreams = m.ClientStreams, m.ServerStreams
	client, err := New(o)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, AnswerLimit)
	defer cancel()
	if err := client.Ready(ctx); err != nil {
		client.Close()
		return nil, nil, err
	}
	return m, client, nil
}

func (c Calls) find(ctx context.Context, server *grpc.ClientConn) (*method.Method, error) {
	if len(c.Files.Names) > 0 {
		return method.FromFiles(ctx, c.Files, c.Method)
	}
	if c.Known != nil {
		if m, err := method.FromRegistry(c.Known, c.Method); err == nil {
			return m, nil
		}
	}
	return method.FromServer(ctx, server, c.Method, AnswerLimit)
}

// The words of a Way, the first being that of the zero value.
const (
	GRPC    = "grpc"
	Connect = "connect"
	GRPCWeb = "grpc-web"

	protoWord = "proto"
	jsonWord  = "json"

	two = "2"
	one = "1.1"
)

// Protocols are the words for a protocol.
func Protocols() []string { return []string{GRPC, Connect, GRPCWeb} }

// Codecs are how messages are written.
func Codecs() []string { return []string{protoWord, jsonWord} }

// versions are those of HTTP: 2 is spoken at once (prior knowledge), or agreed upon by TLS.
func versions() []string { return []string{two, one} }

// Way is how calls are written. The zero value is gRPC with protobuf over HTTP/2.
//
// Shape: made by ParseWay; an empty word is the first of those that there are.
type Way struct {
	Protocol string `json:"protocol,omitempty" key:"protocol" oneof:"grpc|connect|grpc-web"`
	Codec    string `json:"codec,omitempty" key:"codec" oneof:"proto|json"`
	HTTP     string `json:"http,omitempty" key:"http" oneof:"2|1.1"`
}

// ParseWay reads three words; an empty one is the default.
//
// Errors: one line that begins with what is wrong: protocol, codec or http.
func ParseWay(protocol, codec, version string) (w Way, err error) {
	for _, part := range []struct {
		name, text string
		words      []string
		into       *string
	}{
		{"protocol", protocol, Protocols(), &w.Protocol},
		{"codec", codec, Codecs(), &w.Codec},
		{"http", version, versions(), &w.HTTP},
	} {
		switch at := slices.Index(part.words, part.text); {
		case at > 0:
			*part.into = part.text
		case at < 0 && part.text != "":
			return w, fmt.Errorf("%s %.40q: want %s", part.name, part.text, strings.Join(part.words, ", "))
		}
	}
	if w.Protocol == "" && w.HTTP != "" {
		return w, errors.New("http 1.1: gRPC needs HTTP/2; give the protocol connect or grpc-web")
	}
	return w, nil
}

// Plain reports whether it is what package caller speaks.
func (w Way) Plain() bool { return w == Way{} }

// JSON reports whether messages are JSON.
func (w Way) JSON() bool { return w.Codec == jsonWord }

// Check holds the way against how calls share connections.
//
// Errors: one line.
func (w Way) Check(s Strategy) error {
	if s == RoundRobin && !w.Plain() {
		return fmt.Errorf("connections round-robin: grpc-go alone has it, and calls are %s; give single, a number or per-call", w)
	}
	return nil
}

func (w Way) protocol() string { return cmp.Or(w.Protocol, GRPC) }

func (w Way) codec() string { return cmp.Or(w.Codec, protoWord) }

// name is the protocol as people write it.
func (w Way) name() string {
	return map[string]string{GRPC: "gRPC", Connect: "Connect", GRPCWeb: "gRPC-Web"}[w.protocol()]
}

// spoken is the way without the version of HTTP.
func (w Way) spoken() string {
	if w.JSON() {
		return w.name() + " with JSON"
	}
	return w.name()
}

// String is the way in words.
func (w Way) String() string { return w.spoken() + " over HTTP/" + cmp.Or(w.HTTP, two) }
