package h2

import (
	"errors"
	"fmt"
)

// ErrCode is an HTTP/2 error code as it stands in RST_STREAM and GOAWAY.
// Source: RFC 9113 section 7.
type ErrCode uint32

// The error codes of RFC 9113 section 7.
const (
	NoError            ErrCode = 0x0
	ProtocolError      ErrCode = 0x1
	InternalError      ErrCode = 0x2
	FlowControlError   ErrCode = 0x3
	SettingsTimeout    ErrCode = 0x4
	StreamClosed       ErrCode = 0x5
	FrameSizeError     ErrCode = 0x6
	RefusedStream      ErrCode = 0x7
	Cancel             ErrCode = 0x8
	CompressionFailure ErrCode = 0x9
	ConnectError       ErrCode = 0xa
	EnhanceYourCalm    ErrCode = 0xb
	InadequateSecurity ErrCode = 0xc
	HTTP11Required     ErrCode = 0xd
)

var errCodeNames = [...]string{
	"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR",
	"SETTINGS_TIMEOUT", "STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM",
	"CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
	"INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
}

// String returns the name that RFC 9113 gives the code.
func (c ErrCode) String() string {
	if int(c) < len(errCodeNames) {
		return errCodeNames[c]
	}
	return fmt.Sprintf("UNKNOWN_%#x", uint32(c))
}

// ConnError ends a whole connection: the peer broke a rule that leaves the
// state of the connection in doubt.
//
// Shape: Code goes into our GOAWAY; Reason is a stable token, one for each check, so that
// logs and counters tell them apart.
type ConnError struct {
	Code   ErrCode
	Reason string
}

// Error names the code and the reason token.
func (e *ConnError) Error() string { return e.Code.String() + ": " + e.Reason }

// ErrNotHTTP2 is returned by Feed of a server connection whose peer did not
// begin with the connection preface (RFC 9113 section 3.4). Nothing was
// written to the peer before, so that another protocol can still be answered.
var ErrNotHTTP2 = &ConnError{Code: ProtocolError, Reason: "no_preface"}

// errSelfDependency refuses a stream that depends on itself. RFC 9113 has no priorities
// and does not mention it; RFC 7540 (5.3.1) demands it.
var errSelfDependency = errors.New("h2: a stream depends on itself")

func connError(code ErrCode, reason string) error {
	return &ConnError{Code: code, Reason: reason}
}
