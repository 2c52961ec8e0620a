package caller

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"
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
	// if ClientStreams, of the codec of the way. Nobody may change them afterwards. It is called by many
	// goroutines at a time.
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
	// TLS is how calls that are not plain gRPC are secured, Credentials those that are; nil
	// means clear text.
	TLS         *tls.Config
	Credentials credentials.TransportCredentials
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
