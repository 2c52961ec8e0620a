package connect

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/web/webcall"
)

func errTooLong() *StatusError {
	return fail(grpcwire.ResourceExhausted, "a message is longer than "+strconv.Itoa(mostMessage>>20)+" MiB")
}

// serveUnary makes a call with one message each way.
func (c *call) serveUnary() {
	if c.err != nil {
		c.endUnary(nil, endOf(c.err))
		return
	}
	short := !c.json && (c.r.Method == http.MethodGet || 0 <= c.r.ContentLength && c.r.ContentLength <= webcall.PieceSize)
	var message []byte
	if short {
		if message, c.err = c.message(nobody{}); c.err != nil {
			c.endUnary(nil, endOf(c.err))
			return
		}
	}
	k, err := c.open(message, short)
	if err != nil {
		c.endUnary(nil, endOf(err))
		return
	}
	defer k.Close()
	defer context.AfterFunc(c.r.Context(), k.Cancel)()
	if !short {
		if err := c.sendLong(k); err != nil {
			c.endUnary(nil, endOf(err))
			return
		}
	}
	c.answerUnary(k)
}

// sendLong sends a message that is read whole first.
func (c *call) sendLong(k webcall.Call) error {
	message, err := c.message(k)
	if err != nil {
		return err
	}
	_, _ = k.Write(message) // a call that has ended has an answer
	k.CloseSend()
	return nil
}

// nobody counts what a request holds anyway.
type nobody struct{}

func (nobody) Take(int) bool { return true }
func (nobody) Give(int)      {}

// message returns the message of the request with its prefix. Its memory is taken from a
// budget, for as long as the call lasts.
func (c *call) message(from grpcwire.Budget) ([]byte, error) {
	if c.r.Method == http.MethodGet {
		return c.queryMessage(from)
	}
	if c.r.ContentLength > mostMessage {
		return nil, errTooLong()
	}
	body, err := readAll(c.r.Body, grpcwire.AppendPrefix(nil, grpcwire.Prefix{}), from)
	if err != nil {
		return nil, err
	}
	return c.framed(body, from)
}

// queryMessage is message for GET.
func (c *call) queryMessage(from grpcwire.Budget) ([]byte, error) {
	query := c.r.URL.Query()
	message := []byte(query.Get("message"))
	if query.Get("base64") == "1" {
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(string(message), "="))
		if err != nil {
			return nil, fail(grpcwire.InvalidArgument, "message is not base64")
		}
		message = raw
	}
	return c.framed(append(grpcwire.AppendPrefix(nil, grpcwire.Prefix{}), message...), from)
}

// framed writes the prefix of a message that stands behind the room for it.
func (c *call) framed(b []byte, from grpcwire.Budget) ([]byte, error) {
	if c.json {
		value, err := unpacked(b[grpcwire.PrefixLen:], c.packed, from)
		if err != nil {
			return nil, err
		}
		if b, err = c.toProtobuf(value, from); err != nil {
			return nil, err
		}
	}
	grpcwire.AppendPrefix(b[:0], grpcwire.Prefix{Compressed: c.packed && !c.json, Length: uint32(len(b) - grpcwire.PrefixLen)})
	return b, nil
}

// readAll reads a body behind b, of which the capacity is taken from a budget.
func readAll(body io.Reader, b []byte, from grpcwire.Budget) ([]byte, error) {
	const first = 512
	held := 0
	for {
		if len(b) == cap(b) {
			size := max(first, 2*cap(b))
			if !from.Take(size - held) {
				return nil, errNoMemory()
			}
			held = size
			b = append(make([]byte, 0, size), b...)
		}
		n, err := body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case len(b) > mostMessage+grpcwire.PrefixLen:
			return nil, errTooLong()
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil:
			return nil, fail(grpcwire.InvalidArgument, "the request is not whole")
		}
	}
}

// unpacked returns what is in a compressed value, which is measured first: it may be much more.
// Its length is taken from a budget.
func unpacked(value []byte, packed bool, from grpcwire.Budget) ([]byte, error) {
	if !packed || len(value) == 0 {
		return value, nil
	}
	bad := fail(grpcwire.InvalidArgument, "the message is not what gzip writes")
	in, err := gzip.NewReader(bytes.NewReader(value))
	if err != nil {
		return nil, bad
	}
	size, err := io.Copy(io.Discard, io.LimitReader(in, mostMessage+1))
	switch {
	case err != nil:
		return nil, bad
	case size > mostMessage:
		return nil, errTooLong()
	case !from.Take(int(size)):
		return nil, errNoMemory()
	}
	if err := in.Reset(bytes.NewReader(value)); err != nil {
		return nil, bad
	}
	out := make([]byte, size)
	_, err = io.ReadFull(in, out)
	return out, err
}

// answerUnary passes the answer of a call on.
func (c *call) answerUnary(k webcall.Call) {
	body := &webcall.Body{}
	head, ended := webcall.Begin(k, body)
	if ended != nil {
		c.endUnary(nil, ended)
		return
	}
	in := grpcwire.Messages{From: k, Budget: k, Most: mostMessage}
	defer in.Free()
	message, packed, err := in.Next()
	if err == nil && !k.Take(len(message)) {
		err = errNoMemory()
	}
	if err == nil {
		message = bytes.Clone(message) // good until the next one
		if _, _, more := in.Next(); more == nil {
			err = fail(grpcwire.Unimplemented, "the worker has sent more than one message")
		} else if !errors.Is(more, io.EOF) {
			err = more
		}
	}
	ended = c.finish(k, err)
	if ended.Code != grpcwire.OK {
		c.endUnary(head, ended)
		return
	}
	if c.json {
		if message, err = c.toJSON(message, k); err != nil {
			c.endUnary(head, endOf(err))
			return
		}
		message = message[grpcwire.PrefixLen:]
	}
	c.addMetadata("", head)
	c.addMetadata("Trailer-", ended.Fields)
	c.writeUnary(http.StatusOK, message, packed)
}

// finish tells how a call has ended of which a message was read.
func (c *call) finish(k webcall.Call, err error) *webcall.End {
	switch f := (*StatusError)(nil); {
	case errors.As(err, &f):
		return endOf(f)
	case errors.Is(err, grpcwire.ErrTooLong):
		return endOf(errTooLong())
	case errors.Is(err, grpcwire.ErrNoRoom):
		return endOf(errNoMemory())
	case errors.Is(err, grpcwire.ErrPrefixFlag), errors.Is(err, io.ErrUnexpectedEOF):
		return endOf(fail(grpcwire.Internal, "the worker does not speak gRPC"))
	}
	ended := webcall.Finish(k, &webcall.Body{}, err == nil || errors.Is(err, io.EOF))
	if err != nil && ended.Code == grpcwire.OK {
		return &webcall.End{Code: grpcwire.Unimplemented, Message: "cabrank: the worker has sent no message", Fields: ended.Fields}
	}
	return ended
}

// endUnary answers with an error.
func (c *call) endUnary(head h2.Fields, e *webcall.End) {
	c.addMetadata("", head)
	c.addMetadata("Trailer-", e.Fields)
	status := httpStatus(e.Code)
	if e.Code == grpcwire.Unimplemented && c.options.Lacks(c.r.URL.EscapedPath()) {
		status = http.StatusNotFound
	}
	c.kind = kind{json: true}
	c.writeUnary(status, encode(errorOf(e)), false)
}

func (c *call) writeUnary(status int, body []byte, packed bool) {
	h := c.w.Header()
	h.Set("Content-Type", c.contentType())
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if packed {
		h.Set("Content-Encoding", "gzip")
	}
	if c.r.Method == http.MethodGet {
		h.Add("Vary", "Accept-Encoding")
	}
	c.w.WriteHeader(status)
	_, _ = c.w.Write(body) // a caller that has gone needs no answer
}
