package grpcweb

import (
	"context"
	"net/http"
	"strings"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/web/webcall"
)

// Door is the name of callers by gRPC-Web in metrics.
const Door = "grpc-web"

const (
	binaryType = "application/grpc-web"
	textType   = "application/grpc-web-text" // base64
	// trailersFlag marks the frame of the trailers.
	trailersFlag = 0x80
)

// Speaks reports whether a request with a content type is one of gRPC-Web.
func Speaks(contentType string) bool {
	_, _, ok := codecOf(contentType)
	return ok
}

// codecOf returns what stands behind the name of the protocol: "", or "+proto".
func codecOf(contentType string) (codec string, text, ok bool) {
	name, _, _ := strings.Cut(contentType, ";")
	name = strings.ToLower(strings.TrimSpace(name))
	rest, ok := strings.CutPrefix(name, textType)
	if text = ok; !text {
		rest, ok = strings.CutPrefix(name, binaryType)
	}
	return rest, text, ok && (rest == "" || rest[0] == '+')
}

// Handler answers requests of gRPC-Web.
//
// Concurrency: immutable.
type Handler struct{ Open webcall.Opener }

// ServeHTTP implements http.Handler, for requests that Speaks knows.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "cabrank: a call by gRPC-Web is a POST request", http.StatusMethodNotAllowed)
		return
	}
	codec, text, _ := codecOf(r.Header.Get("Content-Type"))
	a := answer{w, codec, text}
	body := webcall.Body{From: r.Body, Length: r.ContentLength}
	if text {
		body.From = &textReader{from: r.Body}
	}
	first, err := body.First()
	if err != nil {
		a.fail(grpcwire.InvalidArgument, err)
		return
	}
	call, err := h.Open(r, webcall.Request{Head: head(r, codec), Body: first, End: body.Ended, Door: Door})
	if err != nil {
		a.fail(grpcwire.Unavailable, err)
		return
	}
	defer call.Close()
	defer context.AfterFunc(r.Context(), call.Cancel)()
	if !body.Ended {
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 knows nothing else
		go body.Send(call)                                   // ends with the body, or behind this request
	}
	a.pass(call, &body)
}

// head returns the fields of the call.
func head(r *http.Request, codec string) h2.Fields {
	f := webcall.Head(r, grpcwire.ContentType+codec)
	for _, name := range [...]string{"Grpc-Timeout", "Grpc-Encoding", "Grpc-Accept-Encoding"} {
		for _, value := range r.Header[name] {
			f = f.Add(strings.ToLower(name), value)
		}
	}
	return f
}
