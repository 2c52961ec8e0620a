package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// kind is what a message is.
type kind string

// Kinds of messages, in the words of juggler.1.
const (
	kindCall kind = "call"
	kindPub  kind = "pub"
	kindSub  kind = "sub"
	kindUnsb kind = "unsb"
	kindNack kind = "nack"
	kindAck  kind = "ack"
	kindRes  kind = "res"
	kindExp  kind = "exp"
	kindEvnt kind = "evnt"
	kindGap  kind = "gap"
	kindAuth kind = "auth"
)

// request says what a request is, as errors do.
func (k kind) request() string {
	switch k {
	case kindPub:
		return "publish"
	case kindSub:
		return "subscribe"
	case kindUnsb:
		return "unsubscribe"
	default:
		return string(k)
	}
}

// request is a message of the client.
type request struct {
	kind    kind
	name    string          // the URI or the channel
	pattern bool            // of kindSub and kindUnsb
	args    json.RawMessage // of kindCall and kindPub; valid JSON
	timeout time.Duration   // of kindCall: whole milliseconds, one at least
	credit  int             // of kindCall: of a stream; 0 otherwise
	token   string          // of kindAuth, of juggler.1 alone
}

// answer is a message of the server.
type answer struct {
	kind             kind   // one that is not known is what the server says
	id               string // of the request; of an event that of its publisher's message
	channel, pattern string
	args             json.RawMessage // of a result or an event
	failure          json.RawMessage // of a result that is an error: all of it
	code             int             // of kindNack, and of a failure
	message          string          // the same
	more             bool            // it is not the last result
	ttl              time.Duration   // of the answer to kindAuth: how long the token counts
}

// dialect is how messages are written.
type dialect interface {
	// newID returns an id that no other request of the connection has.
	newID() string
	// frame returns a request.
	frame(r request, id string) []byte
	// parse reads a message of the server.
	parse(body []byte) (answer, error)
	// cancel returns what ends a call early, and credit what lets it send more
	// results; nil where there is no such thing.
	cancel(id string) []byte
	credit(id string, n int) []byte
}

// encode makes JSON of an argument.
func encode(request kind, name string, args any) (json.RawMessage, error) {
	text, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("%s %s: the argument: %w", request.request(), name, err)
	}
	return text, nil
}

// failure is the error of a function.
type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// readFailure reads one that may have any form.
func readFailure(text json.RawMessage) failure {
	var f failure
	if err := json.Unmarshal(text, &f); err != nil || f.Message == "" {
		f.Message = string(text)
	}
	return f
}

// wrappedFailure returns what a result of juggler.0 has under "error", if that is all
// that it has.
func wrappedFailure(result json.RawMessage) json.RawMessage {
	if !bytes.HasPrefix(result, []byte(`{"error":`)) { // servers send JSON without blanks
		return nil
	}
	var wrapped map[string]json.RawMessage
	if err := json.Unmarshal(result, &wrapped); err != nil || len(wrapped) != 1 || string(wrapped["error"]) == "null" {
		return nil
	}
	return wrapped["error"]
}
