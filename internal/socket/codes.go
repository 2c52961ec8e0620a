package socket

import (
	"errors"
	"strings"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/broker"
)

// Codes of juggler.1 that this package sets; others come with a CodeError. Source:
// docs/juggler.md.
const (
	codeRequest  = 400
	codeUnknown  = 501
	codeTooMany  = 429
	codeCanceled = 499
	codeGone     = 503

	closeMessage  = 4400
	closeToken    = 4401
	closePush     = 4403 // unless the application sets another one
	closeOverflow = 4429
)

// Refusals that juggler.0 does not have: it ends the socket, or does not check.
var (
	errAnnounced error = &broker.CodeError{Code: 403, Text: "a kind of message that was not announced"}
	errSameID    error = &broker.CodeError{Code: 409, Text: "a call of this id has not ended"}
	errLong      error = &broker.CodeError{Code: 413, Text: "the result is longer than a message may be"}
	errContent   error = &broker.CodeError{Code: 415, Text: "it takes JSON alone"}
	errCanceled  error = &broker.CodeError{Code: codeCanceled, Text: "canceled"}
	errNoTokens  error = &broker.CodeError{Code: codeUnknown, Text: "no tokens here"}
)

// codedError returns the code and the text of juggler.1 for an error. Errors of a broker
// about itself are not shown to clients.
func codedError(err error) *broker.CodeError {
	if own, ok := errors.AsType[*broker.CodeError](err); ok {
		return own
	}
	for _, known := range []struct {
		error
		code int
	}{
		{errCalls, codeTooMany},
		{errSubscriptions, codeTooMany},
		{broker.ErrCapacity, codeTooMany},
		{broker.ErrFull, codeTooMany},
		{errMemory, codeTooMany},
		{errPatterns, codeTooMany},
		{errName, codeRequest},
		{errPattern, codeRequest},
	} {
		if errors.Is(err, known.error) {
			return &broker.CodeError{Code: known.code, Text: known.Error()}
		}
	}
	return &broker.CodeError{Code: codeGone, Text: "not available now"}
}

// refusal is the Nack for an error.
func (d dialect) refusal(err error) answer {
	if d.isNew() {
		coded := codedError(err)
		return answer{kind: Nack, code: coded.Code, message: coded.Text}
	}
	code := codeOf(err)
	if errors.Is(err, broker.ErrUnknown) {
		code = nackCode // juggler.0 has no better one
	}
	return answer{kind: Nack, code: code, message: err.Error()}
}

// farewell returns the close frame for the error that ended the reading of a socket; code
// is 0 if the connection is broken, or a close frame was sent already. juggler.0 only has
// one for text that is not UTF-8.
func farewell(d dialect, err error) (code int, why string) {
	switch {
	case errors.Is(err, errUTF8):
		return websocket.CloseInvalidFramePayloadData, ""
	case !d.isNew():
	case errors.Is(err, errBinary):
		return websocket.CloseUnsupportedData, "the subprotocol has frames of the other kind"
	case errors.Is(err, errMessage):
		return closeMessage, err.Error()
	case errors.Is(err, errBudget):
		return websocket.CloseTryAgainLater, errBudget.Error()
	}
	return 0, ""
}

// closeCode returns the code of a close frame: code, or juggler.1's own code for a reason.
func (d dialect) closeCode(reason endReason, code int) int {
	if d.isNew() && reason == endExpired {
		return closeToken
	}
	return code
}

// mostReason bounds the text of a close frame. Source: RFC 6455, section 5.5: 125 bytes
// with the code, which has 2.
const mostReason = 123

// shortened cuts a text to what a close frame takes.
func shortened(text string) string {
	if len(text) <= mostReason {
		return text
	}
	return strings.ToValidUTF8(text[:mostReason], "")
}
