package web

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/net/http/httpguts"

	"github.com/cabrank/cabrank/internal/h2"
)

// newRequest makes the request of a stream. The engine has checked its fields.
//
// Errors: a path that is no URL; the request has its method then.
func newRequest(stream Stream) (r *http.Request, err error) {
	r = &http.Request{
		Proto: "HTTP/2.0", ProtoMajor: 2, Header: make(http.Header),
		RemoteAddr: remoteAddr(stream.Address()), Body: http.NoBody,
	}
	for _, f := range stream.Head() {
		addField(r, f)
	}
	if r.Host == "" { // RFC 9113 8.3.1: :authority goes before
		r.Host = r.Header.Get("Host")
	}
	r.Header.Del("Host")
	r.URL, err = url.ParseRequestURI(r.RequestURI)
	r.Trailer = declaredTrailers(r.Header)
	if !stream.Ended() {
		r.ContentLength = contentLength(r.Header)
		r.Body = &body{
			stream: stream, request: r,
			continues: httpguts.HeaderValuesContainsToken(r.Header["Expect"], "100-continue"),
		}
	}
	return r.WithContext(context.WithValue(stream.Context(), connKey{}, stream)), err
}

// addField adds one field of the head to the request.
func addField(r *http.Request, f h2.Field) {
	switch f.Name {
	case ":method":
		r.Method = f.Value
	case ":path":
		r.RequestURI = f.Value
	case ":authority":
		r.Host = f.Value
	case ":scheme": // the connection has none that a handler could rely on
	case "cookie": // RFC 9113 8.2.3: pieces of one field
		if before := r.Header.Get("Cookie"); before != "" {
			f.Value = before + "; " + f.Value
		}
		r.Header.Set("Cookie", f.Value)
	default:
		r.Header.Add(f.Name, f.Value)
	}
}

// remoteAddr is the caller's address in the form of net/http. The port is not known;
// a caller without an address is named as net/http names those of Unix sockets.
func remoteAddr(address string) string {
	if address == "" {
		return "@"
	}
	return net.JoinHostPort(address, "0")
}

// contentLength is what a request with a body says about its length.
func contentLength(h http.Header) int64 {
	if n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64); err == nil {
		return n
	}
	return unknown
}

// declaredTrailers takes the names that a head says will come behind the body.
func declaredTrailers(h http.Header) http.Header {
	var declared http.Header
	for _, list := range h["Trailer"] {
		for name := range strings.SplitSeq(list, ",") {
			if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); httpguts.ValidTrailerHeader(name) {
				if declared == nil {
					declared = make(http.Header)
				}
				declared[name] = nil
			}
		}
	}
	delete(h, "Trailer")
	return declared
}

// body is the body of a request, read from its stream.
type body struct {
	stream    Stream
	request   *http.Request
	continues bool // its caller waits for word that it is wanted (RFC 9110 10.1.1)
	ended     bool
	closed    atomic.Bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	if b.continues {
		b.continues = false
		b.stream.WriteInterim(h2.AppendField(nil, ":status", "100"))
	}
	n, err := b.stream.Read(p)
	if errors.Is(err, io.EOF) && !b.ended {
		b.ended = true
		b.readTrailers()
	}
	return n, err
}

// readTrailers hands those trailers on that the head has declared, as net/http does.
func (b *body) readTrailers() {
	for _, f := range b.stream.Trailers() {
		name := http.CanonicalHeaderKey(f.Name)
		if _, declared := b.request.Trailer[name]; declared {
			b.request.Trailer[name] = append(b.request.Trailer[name], f.Value)
		}
	}
}

// Close implements io.Closer. What comes is not taken any more, so that its sender
// gets no credit.
func (b *body) Close() error {
	b.closed.Store(true)
	return nil
}
