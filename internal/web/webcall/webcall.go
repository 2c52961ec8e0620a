// Package webcall is what the doors of the web have in common: a call of gRPC as they see it,
// the body of a request on its way into it, and how it ends.
//
// Start from Opener. It knows no connection and no queue: who opens calls is handed in.
package webcall

import (
	"io"
	"net/http"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
)

// Request is how a call begins.
type Request struct {
	Head h2.Fields // as gRPC has it; what else its caller has sent is added by who opens it
	Body []byte    // the beginning of the request, or all of it; nobody changes it while the call lasts
	End  bool      // nothing comes behind Body
	Door string    // by which it came in
}

// Opener begins the call that an HTTP request asks for.
//
// Errors: none is open; the text is for the caller.
type Opener func(r *http.Request, c Request) (Call, error)

// Call is a call of gRPC while it lasts. One goroutine may send while another receives.
type Call interface {
	Sender
	Receiver
	Ender
	grpcwire.Budget // bytes that are held for it count as its caller's
}

// Sender takes the request.
type Sender interface {
	io.Writer
	CloseSend() // nothing follows
}

// Receiver has the answer.
type Receiver interface {
	// Header waits for the beginning of the answer. An answer without messages has its
	// trailers there.
	Header() (h2.Fields, error)
	// Read returns io.EOF behind the last message, and another error where the call was cut.
	Read(p []byte) (int, error)
	// Waits reports whether Read would wait.
	Waits() bool
}

// Ender tells how the call has ended.
type Ender interface {
	Trailer() h2.Fields              // once Read has returned io.EOF
	Status() (grpcwire.Code, string) // once Header or Read has returned an error, or the head has a status
	Cancel()                         // the caller has left; from anywhere
	Close()                          // gives up what is left
}

// Head returns the fields with which a call of gRPC begins.
func Head(r *http.Request, contentType string) h2.Fields {
	f := make(h2.Fields, 0, 256+len(r.URL.Path)+len(r.Host))
	f = f.Add(":method", http.MethodPost).Add(":scheme", "http").Add(":path", r.URL.EscapedPath()).Add(":authority", r.Host)
	return f.Add("te", "trailers").Add("content-type", contentType)
}

// End is how a call has ended.
type End struct {
	Code    grpcwire.Code
	Message string
	Fields  h2.Fields // its trailers, with the status
}

// Begin waits for the head of an answer. ended is nil if messages may follow.
func Begin(call Call, body *Body) (head h2.Fields, ended *End) {
	fields, err := call.Header()
	if err != nil {
		return nil, Finish(call, body, false)
	}
	status := ""
	for name, value := range fields.All() {
		switch name {
		case ":status":
			status = value
		case "grpc-status": // the head is all there is
			code, message := call.Status()
			return nil, &End{code, message, fields}
		}
	}
	if status != "200" {
		return nil, Finish(call, body, false)
	}
	return fields, nil
}

// Finish tells how a call has ended; whole says that Read has returned io.EOF.
func Finish(call Ender, body *Body, whole bool) *End {
	if why := body.broken.Load(); why != nil && !whole {
		return why
	}
	e := &End{}
	if e.Code, e.Message = call.Status(); whole {
		e.Fields = call.Trailer()
	}
	return e
}
