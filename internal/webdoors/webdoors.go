// Package webdoors has callers of the web call workers: browsers, and whoever speaks another
// form of gRPC than HTTP/2 has. It joins the relay and the packages that know these forms.
//
// Start from Doors. A request is a call like any other, made by the connection that it has come
// on: over HTTP/2 beside the calls of gRPC there, over HTTP/1 one after the other.
package webdoors

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/schema"
	"github.com/cabrank/cabrank/internal/web"
	"github.com/cabrank/cabrank/internal/web/connect"
	"github.com/cabrank/cabrank/internal/web/grpcweb"
	"github.com/cabrank/cabrank/internal/web/webcall"
)

// Options of Doors. All are required but PassOn.
type Options struct {
	// Origins are those of pages that may call, at any time.
	Origins func() door.Origins
	// Schema has the methods of workers, for JSON.
	Schema *schema.Schema
	// MayRepeat reports whether a method may be called any number of times.
	MayRepeat func(path string) bool
	// PassOn has workers get what is not gRPC as it is.
	PassOn bool
	Log    *slog.Logger // of handlers that panic
}

// Doors serves requests that are no call of gRPC itself.
//
// Concurrency: immutable.
type Doors struct {
	options Options
	calls   http.Handler // those of all doors
	http2   *web.Server
}

// New returns the doors of a port.
func New(o Options) *Doors {
	d := &Doors{options: o}
	byWeb := &grpcweb.Handler{Open: open}
	byConnect := connect.New(connect.Options{Open: open, Describe: d.describe, TakesOne: d.takesOne, Lacks: o.Schema.Lacks, MayGet: d.mayGet})
	d.calls = web.ForPages(o.Origins, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch kind := r.Header.Get("Content-Type"); {
		case o.PassOn:
			passOn(w, r)
		case grpcweb.Speaks(kind):
			byWeb.ServeHTTP(w, r)
		case connect.Speaks(r.Method, r.URL.RawQuery, kind):
			byConnect.ServeHTTP(w, r)
		default:
			refuse(w, r)
		}
	}))
	d.http2 = &web.Server{Log: o.Log, Handler: http.HandlerFunc(d.serveHTTP2)}
	return d
}

// Find returns who serves a request over HTTP/1; nil: nobody, it is for the page at /.
func (d *Doors) Find(r *http.Request) http.Handler {
	switch {
	case web.IsPage(r.Method, r.URL.Path):
		return nil
	case d.options.PassOn && len(d.options.Origins()) == 0: // the worker knows which pages may call
		return http.HandlerFunc(passOn)
	}
	return d.calls
}

// Other returns what serves a request over HTTP/2 that is no call of gRPC: one of the doors, or
// for the page at /; nil: it is passed on to a worker (relay.Options.Other).
func (d *Doors) Other(head relay.Head) func(*relay.Exchange) {
	path, _, _ := bytes.Cut(head.Path, []byte("?"))
	if d.options.PassOn && len(d.options.Origins()) == 0 && !web.IsPage(string(head.Method), string(path)) {
		return nil
	}
	return func(x *relay.Exchange) { d.http2.Serve(x) }
}

func (d *Doors) serveHTTP2(w http.ResponseWriter, r *http.Request) {
	if serve := d.Find(r); serve != nil {
		serve.ServeHTTP(w, r)
		return
	}
	// It is read to its end first: whoever sends more behind an answer is reset.
	if _, err := io.Copy(io.Discard, r.Body); err == nil {
		web.ServePage(w, r)
	}
}

// refuse answers what is in no form of gRPC.
func refuse(w http.ResponseWriter, r *http.Request) {
	if v, ok := web.Conn(r).(interface{ Refused() }); ok {
		v.Refused()
	}
	w.Header().Set("Connection", "close") // kept ones are for calls
	switch r.Method {
	case http.MethodPost:
	case http.MethodGet, http.MethodHead:
		if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			http.Error(w, "cabrank: no sockets are served at this path, see the key socket.path", http.StatusNotFound)
			return
		}
		http.Error(w, "cabrank: no page is served here, but calls by gRPC, gRPC-Web and Connect", http.StatusNotFound)
		return
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "cabrank: calls are POST requests, or GET by Connect", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Accept-Post", "application/grpc, application/grpc-web, application/grpc-web-text, application/proto, application/json, application/connect+proto, application/connect+json")
	http.Error(w, "cabrank: the content type is not one of gRPC, gRPC-Web or Connect: workers that speak something else need speak: any", http.StatusUnsupportedMediaType)
}

// open begins a call for the connection that a request has come on.
func open(r *http.Request, q webcall.Request) (webcall.Call, error) {
	defer web.Begun(r.Context())
	on, ok := web.Conn(r).(interface{ Local() *relay.Local })
	if !ok {
		return nil, errShutdown
	}
	c := new(relay.LocalCall)
	err := on.Local().Open(c, relay.LocalRequest{Head: q.Head, Header: r.Header, Body: q.Body, End: q.End, Door: q.Door})
	switch {
	case errors.Is(err, relay.ErrTooManyCalls):
		return nil, errCrowded
	case err != nil:
		return nil, errShutdown
	}
	return c, nil
}

// Why no call is made, in words for its caller.
var (
	errShutdown = errors.New("shutting down")
	errCrowded  = errors.New("too many calls are open on this connection")
)

// describe finds the method of a path.
func (d *Doors) describe(ctx context.Context, path string) (connect.Method, error) {
	if m := d.options.Schema.Known(path); m != nil {
		return m, nil
	}
	web.Begun(ctx) // a worker is asked
	m, err := d.options.Schema.Method(ctx, path)
	switch {
	case err == nil:
		return m, nil
	case errors.Is(err, schema.ErrUndescribed):
		return nil, &connect.StatusError{Text: "cabrank: " + err.Error(), Undescribed: true}
	case errors.Is(err, schema.ErrUnknown):
		return nil, &connect.StatusError{Code: grpcwire.Unimplemented, Text: "cabrank: " + err.Error()}
	case errors.Is(err, schema.ErrUnavailable):
		return nil, &connect.StatusError{Code: grpcwire.Unavailable, Text: "cabrank: " + err.Error()}
	default:
		return nil, &connect.StatusError{Code: grpcwire.DeadlineExceeded, Text: "cabrank: no worker has described the method in time"}
	}
}

// takesOne reports whether a method is known to take one message.
func (d *Doors) takesOne(path string) bool {
	m := d.options.Schema.Known(path)
	return m != nil && !m.CallerStreams
}

// mayGet reports whether a method changes nothing, by its rule or its description.
func (d *Doors) mayGet(path string) bool {
	if d.options.MayRepeat(path) {
		return true
	}
	m := d.options.Schema.Known(path)
	return m != nil && m.ChangesNothing
}
