package connect

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/web/webcall"
)

// StatusError is the status with which a request is answered of which no call is made, or that
// has a fault.
type StatusError struct {
	Code        grpcwire.Code
	Text        string
	Undescribed bool // nobody has described the method, so that it cannot be called by JSON
}

// Error implements error.
func (e *StatusError) Error() string { return e.Text }

func fail(code grpcwire.Code, text string) *StatusError {
	return &StatusError{Code: code, Text: "cabrank: " + text}
}

// endOf is how a call ends by an error of messages, or otherwise.
func endOf(err error, otherwise *webcall.End) *webcall.End {
	f := (*StatusError)(nil)
	switch {
	case errors.As(err, &f):
	case errors.Is(err, grpcwire.ErrTooLong):
		f = fail(grpcwire.ResourceExhausted, "a message is longer than "+strconv.Itoa(mostMessage>>20)+" MiB")
	case errors.Is(err, grpcwire.ErrNoRoom):
		f = fail(grpcwire.ResourceExhausted, "there is no memory for this message")
	case errors.Is(err, grpcwire.ErrPrefixFlag):
		f = fail(grpcwire.Internal, "a frame has an unknown flag")
	case errors.Is(err, io.ErrUnexpectedEOF):
		f = fail(grpcwire.Internal, "a message is not whole")
	default:
		return otherwise
	}
	return &webcall.End{Code: f.Code, Message: f.Text}
}

// notWhole is how a call ends whose request breaks off.
func notWhole() *webcall.End {
	return &webcall.End{Code: grpcwire.InvalidArgument, Message: "cabrank: the request is not whole"}
}

// httpStatus is that of a unary answer with an error. Source: Connect Protocol Reference,
// "Error Codes".
func httpStatus(code grpcwire.Code) int {
	return [grpcwire.NumCodes]int{
		grpcwire.Cancelled: 499, grpcwire.Unknown: 500, grpcwire.InvalidArgument: 400, grpcwire.DeadlineExceeded: 504,
		grpcwire.NotFound: 404, grpcwire.AlreadyExists: 409, grpcwire.PermissionDenied: 403, grpcwire.ResourceExhausted: 429,
		grpcwire.FailedPrecondition: 400, grpcwire.Aborted: 409, grpcwire.OutOfRange: 400, grpcwire.Unimplemented: 501,
		grpcwire.Internal: 500, grpcwire.Unavailable: 503, grpcwire.DataLoss: 500, grpcwire.Unauthenticated: 401,
	}[min(code, grpcwire.NumCodes-1)]
}

// wireError is an error as callers are told. Source: Connect Protocol Reference, "Error Details".
type wireError struct {
	Code    string              `json:"code"`
	Message string              `json:"message,omitempty"`
	Details []map[string]string `json:"details,omitempty"`
}

// errorOf returns the error with which a call has ended. Details that cannot be read are left out.
func errorOf(e *webcall.End) *wireError {
	w, status := &wireError{Code: e.Code.InJSON(), Message: e.Message}, &spb.Status{}
	for name, value := range e.Fields.All() {
		if name != "grpc-status-details-bin" {
			continue
		}
		if raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(value, "=")); err != nil || proto.Unmarshal(raw, status) != nil {
			break
		}
		for _, d := range status.GetDetails() {
			kind := d.GetTypeUrl()[strings.LastIndexByte(d.GetTypeUrl(), '/')+1:]
			w.Details = append(w.Details, map[string]string{"type": kind, "value": base64.RawStdEncoding.EncodeToString(d.GetValue())})
		}
	}
	return w
}

// encode returns a value as JSON. Those here always have one.
func encode(value any) []byte {
	text, _ := json.Marshal(value) //nolint:errchkjson // as said
	return text
}
