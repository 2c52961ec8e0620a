package grpcwire

import (
	"slices"
	"strconv"
	"strings"
)

// Code is a gRPC status code as grpc-status carries it, in decimal.
// Source: gRPC, "Status codes and their use in gRPC".
type Code uint8

// The codes of gRPC.
const (
	OK Code = iota
	Cancelled
	Unknown
	InvalidArgument
	DeadlineExceeded
	NotFound
	AlreadyExists
	PermissionDenied
	ResourceExhausted
	FailedPrecondition
	Aborted
	OutOfRange
	Unimplemented
	Internal
	Unavailable
	DataLoss
	Unauthenticated

	// NumCodes is how many codes there are, for tables indexed by code.
	NumCodes = 17
)

var codeNames = [NumCodes]string{
	OK:                 "OK",
	Cancelled:          "CANCELLED",
	Unknown:            "UNKNOWN",
	InvalidArgument:    "INVALID_ARGUMENT",
	DeadlineExceeded:   "DEADLINE_EXCEEDED",
	NotFound:           "NOT_FOUND",
	AlreadyExists:      "ALREADY_EXISTS",
	PermissionDenied:   "PERMISSION_DENIED",
	ResourceExhausted:  "RESOURCE_EXHAUSTED",
	FailedPrecondition: "FAILED_PRECONDITION",
	Aborted:            "ABORTED",
	OutOfRange:         "OUT_OF_RANGE",
	Unimplemented:      "UNIMPLEMENTED",
	Internal:           "INTERNAL",
	Unavailable:        "UNAVAILABLE",
	DataLoss:           "DATA_LOSS",
	Unauthenticated:    "UNAUTHENTICATED",
}

// String returns the name in the spelling of the specification, which is also
// the value of the metrics label "code". A number that is no code is named
// CODE(n).
func (c Code) String() string {
	if c < NumCodes {
		return codeNames[c]
	}
	return "CODE(" + strconv.Itoa(int(c)) + ")"
}

// InJSON returns the name that a code has in JSON: gRPC's own in small letters, and "canceled"
// as Connect writes it. A number that is no code is named as Unknown is.
// Source: Connect protocol, "Error Codes".
func (c Code) InJSON() string {
	switch {
	case c == Cancelled:
		return "canceled"
	case c >= NumCodes:
		c = Unknown
	}
	return strings.ToLower(c.String())
}

// CodeNamed returns the code with a name, in the spelling of the specification.
func CodeNamed(name string) (code Code, known bool) {
	at := slices.Index(codeNames[:], name)
	return Code(max(at, 0)), at >= 0
}

// ParseCode reads the value of a grpc-status trailer.
//
// Shape: 0 to 16, without leading zeros.
// Errors: for any other value the code is Unknown, as which callers treat it,
// and ok is false.
func ParseCode(value []byte) (code Code, ok bool) {
	switch {
	case len(value) == 1 && '0' <= value[0] && value[0] <= '9':
		return Code(value[0] - '0'), true
	case len(value) == 2 && value[0] == '1' && '0' <= value[1] && value[1] <= '6':
		return Code(10 + value[1] - '0'), true
	}
	return Unknown, false
}

// CodeFromHTTP returns the code that callers make of an answer without
// grpc-status, by its HTTP status.
// Source: gRPC, "HTTP to gRPC Status Code Mapping".
func CodeFromHTTP(status int) Code {
	switch status {
	case 400:
		return Internal
	case 401:
		return Unauthenticated
	case 403:
		return PermissionDenied
	case 404:
		return Unimplemented
	case 429, 502, 503, 504:
		return Unavailable
	}
	return Unknown
}
