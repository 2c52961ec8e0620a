package connect

import (
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/web/webcall"
)

// endFlag marks the frame behind the last message of a stream.
const endFlag = 2

// answerStream hands the answer over as it comes: frames of gRPC, or messages in JSON.
func (c *call) answerStream(k webcall.Call) {
	head, end := webcall.Begin(k, &c.body)
	c.startStream(head)
	if end == nil {
		answer := webcall.Answer{From: k, Flush: c.control.Flush}
		write := func(p []byte) error { _, err := c.w.Write(p); return err }
		var err error
		if c.json {
			err = c.each(answer, k, func(message []byte, _ bool) ([]byte, error) { return c.toJSON(message, k) }, write)
		} else {
			err = answer.Pass(write)
		}
		end = endOf(err, webcall.Finish(k, &c.body, errors.Is(err, io.EOF)))
	}
	c.endStream(end)
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

// endStream writes the frame behind the last message.
func (c *call) endStream(e *webcall.End) {
	end := struct {
		Error    *wireError          `json:"error,omitempty"`
		Metadata map[string][]string `json:"metadata,omitempty"`
	}{Metadata: map[string][]string{}}
	if e.Code != grpcwire.OK {
		end.Error = errorOf(e)
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

// answerUnary passes the answer of a call on, which is one message.
func (c *call) answerUnary(k webcall.Call) {
	var frame []byte
	head, end := webcall.Begin(k, &c.body)
	if end == nil {
		var err error
		frame, err = readAll(k, k)
		end = endOf(err, webcall.Finish(k, &c.body, err == nil))
	}
	if end.Code == grpcwire.OK && !isOne(frame) {
		end = &webcall.End{Code: grpcwire.Unimplemented, Message: "cabrank: the worker has not sent one message", Fields: end.Fields}
	}
	if end.Code == grpcwire.OK && c.json {
		var err error
		if frame, err = c.toJSON(frame[grpcwire.PrefixLen:], k); err != nil {
			end = endOf(err, nil)
		}
	}
	if end.Code != grpcwire.OK {
		c.endUnary(head, end)
		return
	}
	if frame[0] == 1 {
		c.w.Header().Set("Content-Encoding", "gzip")
	}
	c.writeUnary(http.StatusOK, c.contentType(), frame[grpcwire.PrefixLen:], head, end.Fields)
}

// endUnary answers with an error.
func (c *call) endUnary(head h2.Fields, e *webcall.End) {
	status := httpStatus(e.Code)
	if e.Code == grpcwire.Unimplemented && c.options.Lacks(c.path) {
		status = http.StatusNotFound
	}
	c.writeUnary(status, kind{json: true}.contentType(), encode(errorOf(e)), head, e.Fields)
}

func (c *call) writeUnary(status int, contentType string, body []byte, head, trailers h2.Fields) {
	c.addMetadata("", head)
	c.addMetadata("Trailer-", trailers)
	h := c.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if c.r.Method == http.MethodGet {
		h.Add("Vary", "Accept-Encoding")
	}
	c.w.WriteHeader(status)
	_, _ = c.w.Write(body) // a caller that has gone needs no answer
}

// end answers with no more than how a call has ended.
func (c *call) end(head h2.Fields, e *webcall.End) {
	if c.stream {
		c.startStream(head)
		c.endStream(e)
	} else {
		c.endUnary(head, e)
	}
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
