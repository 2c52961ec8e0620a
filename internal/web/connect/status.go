package connect

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/web/webcall"
)

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
	Code    string       `json:"code"`
	Message string       `json:"message,omitempty"`
	Details []wireDetail `json:"details,omitempty"`
}

type wireDetail struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// errorOf returns the error with which a call has ended.
func errorOf(e *webcall.End) wireError {
	w := wireError{Code: e.Code.InJSON(), Message: e.Message}
	for name, value := range e.Fields.All() {
		if name == "grpc-status-details-bin" {
			w.Details = detailsOf(value)
		}
	}
	return w
}

// detailsOf reads the details of a status. Those that cannot be read are left out.
func detailsOf(value string) (details []wireDetail) {
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(value, "="))
	status := &spb.Status{}
	if err != nil || proto.Unmarshal(raw, status) != nil {
		return nil
	}
	for _, d := range status.GetDetails() {
		name := d.GetTypeUrl()[strings.LastIndexByte(d.GetTypeUrl(), '/')+1:]
		details = append(details, wireDetail{name, base64.RawStdEncoding.EncodeToString(d.GetValue())})
	}
	return details
}

// encode returns a value as JSON. Those here always have one.
func encode(value any) []byte {
	text, _ := json.Marshal(value) //nolint:errchkjson // as said
	return text
}
