package connect

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"

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
	// Describe finds the method of a path for JSON. An error is a StatusError.
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
	name := "proto"
	if k.json {
		name = "json"
	}
	if k.stream {
		name = "connect+" + name
	}
	return "application/" + name
}

// Speaks reports whether a request is one of Connect, by its method, its query and its content
// type.
func Speaks(method, query, contentType string) bool {
	_, ok := kindOf(contentType)
	return ok && method == http.MethodPost || method == http.MethodGet && strings.Contains("&"+query, "&encoding=")
}

func kindOf(contentType string) (k kind, ok bool) {
	name, _, _ := strings.Cut(contentType, ";")
	name, ok = strings.CutPrefix(strings.ToLower(strings.TrimSpace(name)), "application/")
	name, k.stream = strings.CutPrefix(name, "connect+")
	k.json = name == "json"
	return k, ok && (k.json || name == "proto")
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{Handler: h, w: w, r: r, control: http.NewResponseController(w), path: r.URL.EscapedPath(), body: webcall.Body{From: r.Body, Length: r.ContentLength}}
	if r.Method == http.MethodPost {
		c.kind, _ = kindOf(r.Header.Get("Content-Type"))
	}
	err := c.readFields()
	switch why := (*StatusError)(nil); {
	case errors.As(err, &why) && why.Undescribed:
		w.Header().Set("Accept-Post", kind{stream: c.stream}.contentType())
		http.Error(w, why.Text, http.StatusUnsupportedMediaType)
	case err != nil:
		c.end(nil, endOf(err, nil))
	case r.Method == http.MethodGet && !h.options.MayGet(c.path):
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "cabrank: this method may change something, and is not called by GET: see idempotent of methods", http.StatusMethodNotAllowed)
	default:
		c.serve()
	}
}
