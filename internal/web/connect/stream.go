package connect

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/web/webcall"
)

// endFlag marks the frame behind the last message.
const endFlag = 2

// serveStream makes a call with streams of messages. Their frames are those of gRPC.
func (c *call) serveStream() {
	body := &webcall.Body{From: c.r.Body, Length: c.r.ContentLength}
	if c.err != nil {
		c.startStream(nil)
		c.endStream(endOf(c.err))
		return
	}
	first, err := c.firstPiece(body)
	if err != nil {
		c.startStream(nil)
		c.endStream(endOf(err))
		return
	}
	k, err := c.open(first, body.Ended)
	if err != nil {
		c.startStream(nil)
		c.endStream(endOf(err))
		return
	}
	defer k.Close()
	defer context.AfterFunc(c.r.Context(), k.Cancel)()
	switch {
	case !c.json && !body.Ended && c.takesOne():
		if err := c.sendOne(k, body); err != nil {
			c.startStream(nil)
			c.endStream(endOf(err))
			return
		}
	case c.json:
		_ = c.control.EnableFullDuplex() // HTTP/2 knows nothing else
		go c.sendJSON(k, body)           // ends with the body, or behind this request
	case !body.Ended:
		_ = c.control.EnableFullDuplex() // as above
		go body.Send(k)                  // as above
	}
	c.answerStream(k, body)
}

// firstPiece returns what of a request can be sent with the head of its call. A method that
// takes one message gets no other number of them: some servers of gRPC do not look.
func (c *call) firstPiece(body *webcall.Body) ([]byte, error) {
	if c.json {
		return nil, nil
	}
	first, err := body.First()
	switch {
	case err != nil:
		return nil, fail(grpcwire.InvalidArgument, "the request is not whole")
	case body.Ended && c.takesOne() && !isOneMessage(first):
		return nil, errNotOne()
	}
	return first, nil
}

func errNotOne() *StatusError { return fail(grpcwire.Unimplemented, "the method takes one message") }

func (c *call) takesOne() bool { return c.options.TakesOne(c.r.URL.EscapedPath()) }

// sendOne sends a request that is one message.
func (c *call) sendOne(k webcall.Call, body *webcall.Body) error {
	frames, err := readAll(body.From, nil, k)
	if err != nil {
		return err
	}
	if !isOneMessage(frames) {
		return errNotOne()
	}
	_, _ = k.Write(frames) // a call that has ended has an answer
	k.CloseSend()
	return nil
}

// isOneMessage reports whether frames are those of one message.
func isOneMessage(frames []byte) bool {
	prefix, err := grpcwire.ParsePrefix(frames)
	return err == nil && len(frames) == grpcwire.PrefixLen+int(prefix.Length)
}

// answerStream hands the answer over as it comes.
func (c *call) answerStream(k webcall.Call, body *webcall.Body) {
	head, ended := webcall.Begin(k, body)
	c.startStream(head)
	if ended == nil {
		pass := func(k webcall.Call) error { return c.answer().Pass(k) }
		if c.json {
			pass = c.messagesInJSON
		}
		err := pass(k)
		if ended = webcall.Finish(k, body, errors.Is(err, io.EOF)); ended.Code == grpcwire.OK && !errors.Is(err, io.EOF) {
			ended = endOf(err)
		}
		if f := (*StatusError)(nil); errors.As(err, &f) {
			ended = endOf(f)
		}
	}
	c.endStream(ended)
}

// startStream writes the head of the answer.
func (c *call) startStream(head h2.Fields) {
	c.addMetadata("", head)
	h := c.w.Header()
	h.Set("Content-Type", c.contentType())
	for name, value := range head.All() {
		if name == "grpc-encoding" && value == "gzip" && !c.json {
			h.Set("Connect-Content-Encoding", value)
		}
	}
	c.w.WriteHeader(http.StatusOK)
}

func (c *call) answer() webcall.Answer {
	return webcall.Answer{Write: func(p []byte) error { _, err := c.w.Write(p); return err }, Flush: c.control.Flush}
}

// messagesInJSON passes messages on as JSON, with the errors of messages.
func (c *call) messagesInJSON(k webcall.Call) error {
	in := grpcwire.Messages{From: k, Budget: k, Most: mostMessage}
	defer in.Free()
	for {
		if err := c.answer().Wait(k); err != nil {
			return err
		}
		message, _, err := in.Next()
		if err != nil {
			return c.tellOf(err)
		}
		frame, err := c.toJSON(message, k)
		if err != nil {
			return err
		}
		binary.BigEndian.PutUint32(frame[1:], uint32(len(frame)-grpcwire.PrefixLen))
		_, err = c.w.Write(frame)
		k.Give(cap(frame))
		if err != nil {
			return err
		}
	}
}

// tellOf puts an error of a stream of messages into words for the caller.
func (c *call) tellOf(err error) error {
	switch {
	case errors.Is(err, grpcwire.ErrTooLong):
		return errTooLong()
	case errors.Is(err, grpcwire.ErrNoRoom):
		return errNoMemory()
	case errors.Is(err, grpcwire.ErrPrefixFlag):
		return fail(grpcwire.Internal, "a frame has an unknown flag")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fail(grpcwire.Internal, "a message is not whole")
	}
	return err
}

// sendJSON sends the messages of a request as protobuf.
func (c *call) sendJSON(k webcall.Call, body *webcall.Body) {
	in := grpcwire.Messages{From: body.From, Budget: k, Most: mostMessage}
	defer in.Free()
	for {
		value, packed, err := in.Next()
		if errors.Is(err, io.EOF) {
			k.CloseSend()
			return
		}
		if err == nil {
			value, err = unpacked(value, packed && c.packed, k)
		}
		var frame []byte
		if err == nil {
			frame, err = c.toProtobuf(value, k)
		}
		if packed && c.packed {
			k.Give(len(value))
		}
		if err != nil {
			body.Break(k, endOf(c.tellOf(err)))
			return
		}
		binary.BigEndian.PutUint32(frame[1:], uint32(len(frame)-grpcwire.PrefixLen))
		_, gone := k.Write(frame)
		k.Give(cap(frame))
		if gone != nil {
			return
		}
	}
}

// endStream writes the frame behind the last message.
func (c *call) endStream(e *webcall.End) {
	end := struct {
		Error    *wireError          `json:"error,omitempty"`
		Metadata map[string][]string `json:"metadata,omitempty"`
	}{Metadata: map[string][]string{}}
	if e.Code != grpcwire.OK {
		told := errorOf(e)
		end.Error = &told
	}
	for name, value := range e.Fields.All() {
		if isMetadata(name) {
			end.Metadata[name] = append(end.Metadata[name], value)
		}
	}
	text := encode(end)
	frame := binary.BigEndian.AppendUint32([]byte{endFlag}, uint32(len(text)))
	_, _ = c.w.Write(append(frame, text...)) // a caller that has gone needs no answer
}
