package connect

import (
	"context"
	"net/http"
	"runtime"
	"strings"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/web/webcall"
)

// Door is the name of callers by Connect in metrics.
const Door = "connect"

const (
	// mostMessage is the most bytes of a message that is held whole, as gRPC's own clients have
	// it.
	mostMessage = 4 << 20
	// longValue is from which length on values of JSON are worked at one for each CPU.
	longValue = 4 << 10
)

// Method turns the messages of a method from JSON and into it.
type Method interface {
	Weigher
	// AppendRequest appends the message that a value stands for, AppendAnswer the value of a
	// message.
	AppendRequest(b, value []byte) ([]byte, error)
	AppendAnswer(b, encoded []byte) ([]byte, error) // see AppendRequest
}

// Weigher tells how much memory that takes, at most.
type Weigher interface {
	WeighRequest(value []byte) int               // beside the message
	WeighAnswer(encoded []byte) (work, text int) // and the text of its value
}

// Options of a Handler. All are required.
type Options struct {
	Open webcall.Opener
	// Describe finds the method of a path for JSON. An error is an UndescribedError or a
	// StatusError.
	Describe func(ctx context.Context, path string) (Method, error)
	// TakesOne reports whether a method is known to take one message.
	TakesOne func(path string) bool
	// Lacks reports whether methods are described, and that of a path is not among them.
	Lacks func(path string) bool
	// MayGet reports whether a method may be called by GET: it changes nothing.
	MayGet func(path string) bool
}

// Handler answers requests of Connect.
//
// Concurrency: immutable.
type Handler struct {
	options Options
	turns   chan struct{} // of those that work at a long value of JSON
}

// New returns a handler.
func New(o Options) *Handler { return &Handler{o, make(chan struct{}, runtime.GOMAXPROCS(0))} }

// kind is a form of a request.
type kind struct{ json, stream bool }

func (k kind) contentType() string {
	switch {
	case k.json && k.stream:
		return "application/connect+json"
	case k.stream:
		return "application/connect+proto"
	case k.json:
		return "application/json"
	default:
		return "application/proto"
	}
}

// Speaks reports whether a request is one of Connect, by its method, its query and its content
// type.
func Speaks(method, query, contentType string) bool {
	_, ok := kindOf(contentType)
	return ok && method == http.MethodPost || method == http.MethodGet && strings.Contains("&"+query, "&encoding=")
}

func kindOf(contentType string) (k kind, ok bool) {
	name, _, _ := strings.Cut(contentType, ";")
	name = strings.ToLower(strings.TrimSpace(name))
	for _, k := range [...]kind{{}, {json: true}, {stream: true}, {true, true}} {
		if k.contentType() == name {
			return k, true
		}
	}
	return kind{}, false
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k, _ := kindOf(r.Header.Get("Content-Type"))
	c := &call{Handler: h, w: w, r: r, control: http.NewResponseController(w), kind: k}
	if c.err = c.readFields(); c.err == nil && c.json {
		c.err = c.describe()
	}
	switch {
	case c.undescribed():
		c.refuse()
	case k.stream:
		c.serveStream()
	case r.Method == http.MethodGet && !h.options.MayGet(r.URL.EscapedPath()):
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "cabrank: this method may change something, and is not called by GET: see idempotent of methods", http.StatusMethodNotAllowed)
	default:
		c.serveUnary()
	}
}

// StatusError is the status with which a request is answered of which no call is made.
type StatusError struct {
	Code grpcwire.Code
	Text string
}

// Error implements error.
func (e *StatusError) Error() string { return e.Text }

func fail(code grpcwire.Code, text string) *StatusError {
	return &StatusError{code, "cabrank: " + text}
}

// UndescribedError is that nobody has described a method, so that it cannot be called by JSON.
type UndescribedError struct{ Text string }

// Error implements error.
func (e *UndescribedError) Error() string { return e.Text }
