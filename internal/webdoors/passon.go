package webdoors

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/web/webcall"
)

// anyDoor is the door of requests that are passed on as they are.
const anyDoor = "http"

// passOn has a worker answer a request over HTTP/1 as it is.
func passOn(w http.ResponseWriter, r *http.Request) {
	body := &webcall.Body{From: r.Body, Length: r.ContentLength}
	first, err := body.First()
	if err != nil {
		http.Error(w, "cabrank: the request is not whole", http.StatusBadRequest)
		return
	}
	call, err := open(r, webcall.Request{Head: requestHead(r), Body: first, End: body.Ended, Door: anyDoor})
	if err != nil {
		http.Error(w, "cabrank: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer call.Close()
	defer context.AfterFunc(r.Context(), call.Cancel)()
	control := http.NewResponseController(w)
	if !body.Ended {
		_ = control.EnableFullDuplex()
		go body.Send(call) // ends with the body, or behind this request
	}
	head, err := call.Header()
	if err != nil {
		http.Error(w, "cabrank: worker lost", http.StatusBadGateway)
		return
	}
	writeHead(w, head)
	write := func(p []byte) error { _, err := w.Write(p); return err }
	if err := (webcall.Answer{From: call, Flush: control.Flush}).Pass(write); !errors.Is(err, io.EOF) {
		panic(http.ErrAbortHandler) //nolint:forbidigo // as net/http has an answer end that is not whole
	}
	for name, value := range call.Trailer().All() {
		w.Header().Add(http.TrailerPrefix+name, value)
	}
}

// requestHead returns the fields of a request but those that are added for all calls.
func requestHead(r *http.Request) h2.Fields {
	f := make(h2.Fields, 0, 256).Add(":method", r.Method).Add(":scheme", "http").Add(":path", r.URL.RequestURI()).Add(":authority", r.Host)
	for name, values := range r.Header {
		name = strings.ToLower(name)
		if strings.HasPrefix(name, "connect-") || strings.HasPrefix(name, "grpc-") {
			for _, value := range values {
				f = f.Add(name, value)
			}
		}
	}
	if r.ContentLength > 0 {
		f = f.Add("content-length", strconv.FormatInt(r.ContentLength, 10))
	}
	return f.Add("te", "trailers")
}

func writeHead(w http.ResponseWriter, head h2.Fields) {
	status := http.StatusOK
	for name, value := range head.All() {
		if name == ":status" {
			status, _ = strconv.Atoi(value) // the engine has read it
			continue
		}
		w.Header().Add(name, value)
	}
	w.WriteHeader(status)
}
