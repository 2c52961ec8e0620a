package connect

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
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
	path    string
	body    webcall.Body // by GET what is in the query
	method  Method       // of JSON
	timeout time.Duration
	packed  bool // the messages of the request may be compressed by gzip
	unpacks bool // the caller takes messages that are
}

// readFields reads what the head of a request says, and finds the method of JSON.
func (c *call) readFields() error {
	of, prefix := c.r.Header, ""
	if c.stream {
		prefix = "Connect-"
	}
	version, packing := of.Get("Connect-Protocol-Version"), of.Get(prefix+"Content-Encoding")
	if c.r.Method == http.MethodGet {
		query := c.r.URL.Query()
		version, packing = strings.TrimPrefix(query.Get("connect"), "v"), query.Get("compression")
		if err := c.readQuery(query); err != nil {
			return err
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
	if err := c.readTimeout(of.Get("Connect-Timeout-Ms")); err != nil || !c.json {
		return err
	}
	return c.describe()
}

// readQuery reads the message of a GET request.
func (c *call) readQuery(query url.Values) (err error) {
	message := []byte(query.Get("message"))
	c.json = query.Get("encoding") == "json"
	switch {
	case !c.json && query.Get("encoding") != "proto":
		return fail(grpcwire.InvalidArgument, "encoding is neither proto nor json")
	case query.Get("base64") == "1":
		if message, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(query.Get("message"), "=")); err != nil {
			return fail(grpcwire.InvalidArgument, "message is not base64")
		}
	}
	c.body.From, c.body.Length = bytes.NewReader(message), int64(len(message))
	return nil
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

func (c *call) describe() (err error) {
	ctx := c.r.Context()
	if c.timeout > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, c.timeout)
		defer done()
	}
	c.method, err = c.options.Describe(ctx, c.path)
	return err
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

// serve makes the call, and answers as it does. What is not sent with its head is sent while
// the answer is waited for: its deadline holds for a request that never ends, too.
func (c *call) serve() {
	first, err := c.first()
	if err != nil {
		c.end(nil, endOf(err, notWhole()))
		return
	}
	k, err := c.options.Open(c.r, webcall.Request{Head: c.head(), Body: first, End: c.body.Ended, Door: Door})
	if err != nil {
		c.end(nil, endOf(fail(grpcwire.Unavailable, err.Error()), nil))
		return
	}
	defer k.Close()
	defer context.AfterFunc(c.r.Context(), k.Cancel)()
	if !c.body.Ended {
		_ = c.control.EnableFullDuplex() // HTTP/2 knows nothing else
		go c.send(k)                     // ends with the body, or behind this request
	}
	if c.stream {
		c.answerStream(k)
	} else {
		c.answerUnary(k)
	}
}

// first returns what of a request can be sent with the head of its call: all of it, if that is
// short and in protobuf.
func (c *call) first() ([]byte, error) {
	switch {
	case !c.stream && c.body.Length > mostMessage:
		return nil, grpcwire.ErrTooLong
	case c.json:
		return nil, nil
	}
	first, err := c.body.First()
	switch {
	case err != nil || !c.body.Ended:
		return nil, err
	case !c.stream:
		return append(c.prefix(len(first)), first...), nil
	case c.takesOne() && !isOne(first):
		return nil, errNotOne()
	}
	return first, nil
}

// send sends what does not leave with the head of the call.
func (c *call) send(k webcall.Call) {
	var err error
	switch {
	case c.stream && c.json:
		err = c.sendJSON(k)
	case c.stream && !c.takesOne():
		c.body.Send(k)
	default:
		err = c.sendOne(k)
	}
	if err != nil {
		c.body.Break(k, endOf(err, notWhole()))
	}
}

// takesOne reports whether the method is known to take one message. It gets no other number
// of them: some servers of gRPC do not look.
func (c *call) takesOne() bool { return c.options.TakesOne(c.path) }

func errNotOne() *StatusError { return fail(grpcwire.Unimplemented, "the method takes one message") }

// isOne reports whether frames are those of one message.
func isOne(frames []byte) bool {
	prefix, err := grpcwire.ParsePrefix(frames)
	return err == nil && len(frames) == grpcwire.PrefixLen+int(prefix.Length)
}

// prefix is that of a message in protobuf.
func (c *call) prefix(length int) []byte {
	return grpcwire.AppendPrefix(nil, grpcwire.Prefix{Compressed: c.packed, Length: uint32(length)})
}

// sendOne sends a request that is one message, and is read whole first: for as long as the
// call lasts its memory is taken from that.
func (c *call) sendOne(k webcall.Call) error {
	message, err := readAll(c.body.From, k)
	switch {
	case err != nil:
	case c.json:
		message, err = c.toProtobuf(message, c.packed, k)
	case !c.stream:
		_, _ = k.Write(c.prefix(len(message))) // a call that has ended has an answer
	case !isOne(message):
		err = errNotOne()
	}
	if err != nil {
		return err
	}
	_, _ = k.Write(message) // as above
	k.CloseSend()
	return nil
}

// readAll reads a message, whose capacity is taken from a budget, or the frame of one.
//
// Errors: grpcwire.ErrTooLong, grpcwire.ErrNoRoom; those of the reader.
func readAll(r io.Reader, from grpcwire.Budget) (b []byte, err error) {
	const first, most = 512, grpcwire.PrefixLen + mostMessage
	for {
		if len(b) == cap(b) {
			size := min(max(first, 2*cap(b)), most+1)
			if !from.Take(size - cap(b)) {
				return nil, grpcwire.ErrNoRoom
			}
			b = append(make([]byte, 0, size), b...)
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case len(b) > most:
			return nil, grpcwire.ErrTooLong
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil:
			return nil, err
		}
	}
}

// sendJSON sends a stream of messages as protobuf.
func (c *call) sendJSON(k webcall.Call) error {
	var gone error // the call has an answer
	err := c.each(c.body.From, k, func(value []byte, packed bool) ([]byte, error) {
		return c.toProtobuf(value, packed && c.packed, k)
	}, func(frame []byte) error { _, gone = k.Write(frame); return gone })
	switch {
	case gone != nil:
		err = nil
	case errors.Is(err, io.EOF):
		k.CloseSend()
		err = nil
	}
	return err
}

// each reads messages, and hands on each as it is turned, whose memory is taken from the call.
func (c *call) each(from io.Reader, k webcall.Call, turn func(message []byte, packed bool) ([]byte, error), write func([]byte) error) error {
	in := grpcwire.Messages{From: from, Budget: k, Most: mostMessage}
	defer in.Free()
	for {
		message, packed, err := in.Next()
		if err != nil {
			return err
		}
		frame, err := turn(message, packed)
		if err != nil {
			return err
		}
		err = write(frame)
		k.Give(cap(frame))
		if err != nil {
			return err
		}
	}
}
