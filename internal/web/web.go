// Package web serves streams of callers' connections by net/http handlers: pages,
// and callers that speak another protocol than gRPC.
//
// Start from Server and Stream. How it works by default:
//
//  1. A Server makes an *http.Request of a stream's head and has its Handler answer
//     it, as net/http does on a connection of HTTP/2, in the goroutine that calls
//     Serve.
//  2. The request's body is read as it comes: who does not read gives no credit. The
//     answer leaves as the caller takes it, in pieces of 4 KiB or as large as they
//     were written, and at every Flush.
//  3. A handler that panics resets its own stream and nothing else.
//
// Connections that speak HTTP/1 have a server of their own, HTTP1. It is that of
// net/http, which refuses what is malformed, too slow or too large; nothing that it
// reads is passed on. IsPage and ServePage are the page at /, that both serve.
//
// It knows no call and no queue. Not there: deadlines for reading and writing, which
// the owner of the stream has, pushes, and hijacking.
package web

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/cabrank/cabrank/internal/h2"
)

// Stream is one request of a caller and the way back for its answer. One goroutine
// may read while another one writes.
type Stream interface {
	Request
	Reader
	Writer
}

// Request is what is known of a request from its head.
type Request interface {
	Head() []h2.Field         // its fields, pseudo-header fields first
	Address() string          // of the caller, without port; "" if it has none
	Context() context.Context // ends when the caller has left
}

// Reader takes the request behind its head.
type Reader interface {
	// Ended reports whether all of the request was read, or there is nothing to read.
	Ended() bool
	// Read is that of io.Reader: io.EOF means the end that the caller has sent.
	Read(p []byte) (int, error)
	// Trailers returns the fields behind the end, if there are any.
	Trailers() []h2.Field
}

// Writer takes the answer. Blocks are of stateless fields (h2.AppendField).
type Writer interface {
	WriteInterim(block []byte)              // 1xx
	WriteHead(block []byte, end bool) error // the final head, or with end trailers
	// Write hands p on and waits until it was taken.
	Write(p []byte, end bool) (int, error)
	// Reset ends the stream where its answer cannot be completed.
	Reset(code h2.ErrCode)
}

// Server answers streams by a handler.
//
// Concurrency: immutable; Serve may be called by any number of goroutines.
type Server struct {
	Handler http.Handler
	Log     *slog.Logger // of handlers that panic
}

// Serve has the handler answer one request. It returns when the answer was taken or
// the caller has gone; nothing of the stream is used after that, whatever the handler
// has kept.
func (s *Server) Serve(stream Stream) {
	whole := false
	defer func() {
		if !whole { // else the handler has panicked, or has ended its goroutine
			s.broken(stream, recover())
		}
	}()
	a := &answer{stream: stream, header: make(http.Header), length: unknown}
	r, err := newRequest(stream)
	a.bodyless = r.Method == http.MethodHead
	if err != nil {
		http.Error(a, "cabrank: bad request", http.StatusBadRequest)
	} else {
		s.Handler.ServeHTTP(a, r)
	}
	a.finish()
	whole = true
}

// broken ends the stream of a handler that did not come to its end.
func (s *Server) broken(stream Stream, why any) {
	stream.Reset(h2.InternalError)
	if why != nil && why != http.ErrAbortHandler { //nolint:errorlint // a panic's value, as net/http compares it
		s.Log.Error("an http handler has panicked", "panic", why, "caller", stream.Address(), "stack", string(debug.Stack()))
	}
}
