package caller

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/lab/internal/traffic"
)

const (
	mostLine        = 300                   // bytes of a failure's text that are kept
	mostWorkers     = 100                   // names that are read of one answer
	askGatewayEvery = 20 * time.Millisecond // how often Ready asks one that does not answer
)

// GatewayOptions are what to ask a gateway for: a program that makes gRPC calls for each
// request, as the front of examples/fibonacci does.
type GatewayOptions struct {
	Address string // host:port
	Path    string // what is asked for, with its query
	Ready   string // a path that is answered with 200 when the gateway can work; empty: Path
	Seed    uint64 // stands for {{.Seed}}
}

// Gateway makes requests to a gateway, each over a connection of its own: so do curl and ab.
//
//   - A request is a GET; {{.RequestNumber}} and {{.Seed}} in its path are filled in.
//   - Its status becomes one of gRPC, 503 UNAVAILABLE for example; the first line of a
//     failure is its message.
//   - X-Calls-By-Server, "a=3, b=2", says who has answered the calls behind it.
//
// Life: NewGateway; Ready if wanted; calls; Close when all have ended.
type Gateway struct {
	Dialer

	options GatewayOptions
	client  http.Client
}

// NewGateway returns a client, which has not asked for anything.
//
// Errors: one line, for an address or a path that cannot be.
func NewGateway(o GatewayOptions) (*Gateway, error) {
	if _, _, err := net.SplitHostPort(o.Address); err != nil {
		return nil, fmt.Errorf("gateway %.80q: want host:port", o.Address)
	}
	for _, path := range []string{o.Path, o.Ready} {
		if err := CheckPath(path); path != "" && err != nil {
			return nil, err
		}
	}
	c := &Gateway{options: o}
	c.client.Transport = &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, Proxy: nil, DialContext: c.Dial,
	}
	c.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// CheckPath says in a line what is wrong with a path, or nil.
func CheckPath(path string) error {
	filled := GatewayOptions{Path: path}.path(0)
	u, err := url.ParseRequestURI(filled)
	if err != nil || u.Host != "" || !strings.HasPrefix(path, "/") || strings.ContainsAny(path, " #") {
		return fmt.Errorf("path %.120q: want one such as /fibonacci?n={{.RequestNumber}}", path)
	}
	if strings.Contains(filled, "{{") {
		return fmt.Errorf("path %.120q: {{.RequestNumber}} and {{.Seed}} can be filled in, nothing else", path)
	}
	return nil
}

func (o GatewayOptions) path(number uint64) string {
	return strings.NewReplacer(
		"{{.RequestNumber}}", strconv.FormatUint(number, 10), "{{.Seed}}", strconv.FormatUint(o.Seed, 10),
	).Replace(o.Path)
}

// Ready returns when the gateway answers with 200.
//
// Errors: one line with its last answer, when ctx ends.
func (c *Gateway) Ready(ctx context.Context) error {
	path := cmp.Or(c.options.Ready, c.options.path(0))
	var last traffic.Answer
	for {
		answer := c.get(ctx, path)
		if answer.Code == 0 {
			return nil
		}
		if ctx.Err() == nil {
			last = answer
		}
		select {
		case <-time.After(askGatewayEvery):
		case <-ctx.Done():
			return fmt.Errorf("the gateway at %s does not answer %s: %s", c.options.Address, path, last.Message)
		}
	}
}

// String says how calls are made.
func (c *Gateway) String() string { return "HTTP requests, each over a connection of its own" }

// Close ends the connections.
func (c *Gateway) Close() { c.client.CloseIdleConnections() }

// Call makes one request.
func (c *Gateway) Call(ctx context.Context, call traffic.Call) traffic.Answer {
	ctx, cancel := call.Bound(ctx)
	defer cancel()
	return c.get(ctx, c.options.path(call.Number))
}

func (c *Gateway) get(ctx context.Context, path string) traffic.Answer {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.options.Address+path, http.NoBody)
	if err != nil {
		return traffic.Answer{Code: uint32(codes.InvalidArgument), Message: err.Error()}
	}
	response, err := c.client.Do(request)
	if err != nil {
		return unanswered(ctx, err)
	}
	defer response.Body.Close()
	answer := traffic.Answer{
		Sent: traffic.Volume{Messages: 1}, Workers: workers(response.Header.Get("X-Calls-By-Server")),
		Code: uint32(CodeOf(response.StatusCode)),
	}
	body := bufio.NewReaderSize(response.Body, mostLine)
	if answer.Code != 0 {
		line, _ := body.Peek(mostLine)
		first, _, _ := strings.Cut(string(line), "\n")
		answer.Message = fmt.Sprintf("%d %s", response.StatusCode, strings.TrimSpace(first))
	}
	n, err := io.Copy(io.Discard, body)
	answer.Received = traffic.Volume{Messages: 1, Bytes: n}
	if err != nil && answer.Code == 0 {
		return unanswered(ctx, err)
	}
	return answer
}

func unanswered(ctx context.Context, err error) traffic.Answer {
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err // without the URL, which differs from call to call
	}
	answer := traffic.Answer{Code: uint32(codes.Unavailable), Message: err.Error()}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		answer.Code, answer.Message = uint32(codes.DeadlineExceeded), "deadline exceeded"
	case ctx.Err() != nil:
		answer.Code, answer.Message = uint32(codes.Canceled), "cancelled"
	}
	return answer
}

// CodeOf is the status of gRPC for one of HTTP.
func CodeOf(status int) codes.Code {
	switch status {
	case http.StatusOK, http.StatusNoContent:
		return codes.OK
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return codes.InvalidArgument
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return codes.Unimplemented
	case http.StatusTooManyRequests:
		return codes.ResourceExhausted
	case http.StatusServiceUnavailable:
		return codes.Unavailable
	case http.StatusGatewayTimeout:
		return codes.DeadlineExceeded
	case http.StatusInternalServerError, http.StatusBadGateway:
		return codes.Internal
	default:
		return codes.Unknown
	}
}

// workers reads "a=3, b=2"; what is no number is left out.
func workers(header string) traffic.Shares {
	if header == "" {
		return nil
	}
	shares := traffic.Shares{}
	for part := range strings.SplitSeq(header, ",") {
		name, number, _ := strings.Cut(strings.TrimSpace(part), "=")
		calls, err := strconv.ParseInt(number, 10, 64)
		if err == nil && calls > 0 && len(shares) < mostWorkers {
			shares[name] += calls
		}
	}
	return shares
}
