package connect

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/web/webcall"
)

// call is one request and its answer.
type call struct {
	*Handler
	kind

	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	method  Method // of JSON
	timeout time.Duration
	packed  bool  // the messages of the request may be compressed by gzip
	unpacks bool  // the caller takes messages that are
	err     error // why no call is made
}

// readFields reads what the head of a request says.
func (c *call) readFields() error {
	of, prefix := c.r.Header, ""
	if c.stream {
		prefix = "Connect-"
	}
	version, packing := of.Get("Connect-Protocol-Version"), of.Get(prefix+"Content-Encoding")
	if c.r.Method == http.MethodGet {
		query := c.r.URL.Query()
		version, packing = strings.TrimPrefix(query.Get("connect"), "v"), query.Get("compression")
		switch query.Get("encoding") {
		case "proto":
		case "json":
			c.json = true
		default:
			return fail(grpcwire.InvalidArgument, "encoding is neither proto nor json")
		}
	}
	switch {
	case version != "" && version != "1":
		return fail(grpcwire.InvalidArgument, "the version of Connect is not 1: "+strconv.Quote(version))
	case packing == "gzip":
		c.packed = true
	case packing != "" && packing != "identity":
		return fail(grpcwire.Unimplemented, "unknown compression "+strconv.Quote(packing)+": supported encodings are gzip")
	}
	c.unpacks = strings.Contains(of.Get(prefix+"Accept-Encoding"), "gzip")
	return c.readTimeout(of.Get("Connect-Timeout-Ms"))
}

// readTimeout reads a time of at most ten digits, in milliseconds.
func (c *call) readTimeout(text string) error {
	const mostDigits = 10
	if text == "" {
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || len(text) > mostDigits {
		return fail(grpcwire.InvalidArgument, "connect-timeout-ms is not a time in milliseconds: "+strconv.Quote(text))
	}
	c.timeout = max(time.Duration(n)*time.Millisecond, 1)
	return nil
}

// describe finds the method of JSON.
func (c *call) describe() (err error) {
	ctx := c.r.Context()
	if c.timeout > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, c.timeout)
		defer done()
	}
	c.method, err = c.options.Describe(ctx, c.r.URL.EscapedPath())
	return err
}

// undescribed reports whether the caller has to use protobuf.
func (c *call) undescribed() bool {
	is := (*UndescribedError)(nil)
	return errors.As(c.err, &is)
}

// refuse answers a caller that has to use protobuf.
func (c *call) refuse() {
	accepts := kind{stream: c.stream}
	c.w.Header().Set("Accept-Post", accepts.contentType())
	http.Error(c.w, "cabrank: "+c.err.Error(), http.StatusUnsupportedMediaType)
}

// head returns the fields of the call.
func (c *call) head() h2.Fields {
	f := webcall.Head(c.r, grpcwire.ContentType+"+proto")
	if c.timeout > 0 {
		f = f.Add("grpc-timeout", string(grpcwire.AppendTimeout(nil, c.timeout)))
	}
	if c.packed && !c.json {
		f = f.Add("grpc-encoding", "gzip")
	}
	if c.unpacks && !c.json {
		return f.Add("grpc-accept-encoding", "gzip")
	}
	return f.Add("grpc-accept-encoding", "identity")
}

// open begins the call.
func (c *call) open(body []byte, end bool) (webcall.Call, error) {
	k, err := c.options.Open(c.r, webcall.Request{Head: c.head(), Body: body, End: end, Door: Door})
	if err != nil {
		return nil, fail(grpcwire.Unavailable, err.Error())
	}
	return k, nil
}

// endOf is an error as the end of a call.
func endOf(err error) *webcall.End {
	if f := (*StatusError)(nil); errors.As(err, &f) {
		return &webcall.End{Code: f.Code, Message: f.Text}
	}
	return &webcall.End{Code: grpcwire.Internal, Message: "cabrank: " + err.Error()}
}

// addMetadata adds fields of a worker to the head of an answer.
func (c *call) addMetadata(prefix string, fields h2.Fields) {
	for name, value := range fields.All() {
		if isMetadata(name) {
			c.w.Header().Add(prefix+name, value)
		}
	}
}

// isMetadata reports whether a field of an answer is for the caller's code.
func isMetadata(name string) bool {
	return name[0] != ':' && name != "content-type" && name != "content-length" && !strings.HasPrefix(name, "grpc-")
}
