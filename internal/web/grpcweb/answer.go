package grpcweb

import (
	"encoding/base64"
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

// answer writes the answer to a request.
type answer struct {
	w     http.ResponseWriter
	codec string // as its caller has named it
	text  bool
}

// pass hands the answer of a call over as it comes.
func (a *answer) pass(call webcall.Call, body *webcall.Body) {
	head, ended := webcall.Begin(call, body)
	a.begin(head)
	if ended == nil {
		err := webcall.Answer{From: call, Flush: http.NewResponseController(a.w).Flush}.Pass(a.write)
		ended = webcall.Finish(call, body, errors.Is(err, io.EOF))
	}
	a.end(ended)
}

// begin writes the head of an answer with what a worker has put there, if there was one.
func (a *answer) begin(fields h2.Fields) {
	header := a.w.Header()
	for name, value := range fields.All() {
		switch name {
		case ":status", "content-length": // the trailers come on top
		case "content-type":
			if codec, is := strings.CutPrefix(value, grpcwire.ContentType); is {
				a.codec = codec
			}
		default:
			header.Add(name, value)
		}
	}
	kind := binaryType
	if a.text {
		kind = textType
	}
	header.Set("Content-Type", kind+a.codec)
	a.w.WriteHeader(http.StatusOK)
}

// write writes a part of the body, in text each with its own padding.
func (a *answer) write(p []byte) error {
	if a.text {
		p = base64.StdEncoding.AppendEncode(make([]byte, 0, base64.StdEncoding.EncodedLen(len(p))), p)
	}
	_, err := a.w.Write(p)
	return err
}

// fail answers a request of which no call was made.
func (a *answer) fail(code grpcwire.Code, why error) {
	a.begin(nil)
	a.end(&webcall.End{Code: code, Message: "cabrank: " + why.Error()})
}

// end writes the frame of the trailers.
func (a *answer) end(e *webcall.End) {
	frame := appendTrailer(make([]byte, grpcwire.PrefixLen, 128), "grpc-status", strconv.Itoa(int(e.Code)))
	if e.Message != "" {
		frame = appendTrailer(frame, "grpc-message", string(grpcwire.AppendMessage(nil, e.Message)))
	}
	for name, value := range e.Fields.All() {
		switch name {
		case ":status", "content-type", "grpc-status", "grpc-message":
		default:
			frame = appendTrailer(frame, name, value)
		}
	}
	frame[0] = trailersFlag
	binary.BigEndian.PutUint32(frame[1:], uint32(len(frame)-grpcwire.PrefixLen))
	_ = a.write(frame) // a caller that has gone needs no answer
}

func appendTrailer(b []byte, name, value string) []byte {
	return append(append(append(append(b, name...), ": "...), value...), "\r\n"...)
}
