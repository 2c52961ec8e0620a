package client

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// kind is the type of a message.
type kind int

// Kinds of messages. Source: docs/juggler.md.
const (
	kindCall kind = 1
	kindPub  kind = 2
	kindSub  kind = 3
	kindUnsb kind = 4
	kindNack kind = 7
	kindAck  kind = 8
	kindRes  kind = 9
	kindEvnt kind = 10
)

// String says what a request is, as errors do.
func (k kind) String() string {
	switch k {
	case kindCall:
		return "call"
	case kindPub:
		return "publish"
	case kindSub:
		return "subscribe"
	default:
		return "unsubscribe"
	}
}

// word is what juggler.1 has for it.
func (k kind) word() string {
	switch k {
	case kindCall:
		return "call"
	case kindPub:
		return "pub"
	case kindSub:
		return "sub"
	case kindUnsb:
		return "unsb"
	case kindNack:
		return "nack"
	case kindAck:
		return "ack"
	case kindRes:
		return "res"
	case kindEvnt:
		return "evnt"
	}
	return strconv.Itoa(int(k))
}

// request is a message of the client.
type request struct {
	kind    kind
	name    string          // the URI or the channel
	pattern bool            // of kindSub and kindUnsb
	args    json.RawMessage // of kindCall and kindPub; valid JSON
	timeout time.Duration   // of kindCall
}

// frame returns the message with its id.
func (r request) frame(id string) []byte {
	b := make([]byte, 0, 128+len(r.name)+len(r.args))
	b = fmt.Appendf(b, `{"meta":{"type":%d,"uuid":"%s"},"payload":{`, r.kind, id)
	key := `"channel":`
	if r.kind == kindCall {
		b = fmt.Appendf(b, `"timeout":%d,`, r.timeout.Nanoseconds())
		key = `"uri":`
	}
	b = append(b, key...)
	name, _ := json.Marshal(r.name) //nolint:errchkjson // texts always are JSON
	b = append(b, name...)
	switch {
	case r.args != nil:
		b = append(b, `,"args":`...)
		b = append(b, r.args...)
	case r.pattern:
		b = append(b, `,"pattern":true`...)
	}
	return append(b, "}}"...)
}

// answer is a message of the server.
type answer struct {
	Meta struct {
		Type kind `json:"type"`
	} `json:"meta"`
	Payload struct {
		For     string          `json:"for"`
		URI     string          `json:"uri"`
		Channel string          `json:"channel"`
		Pattern string          `json:"pattern"`
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Args    json.RawMessage `json:"args"`
	} `json:"payload"`
}

// encode makes JSON of an argument.
func encode(request kind, name string, args any) (json.RawMessage, error) {
	text, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("%s %s: the argument: %w", request, name, err)
	}
	return text, nil
}

// failure reads the error of a function, or returns nil for a result.
func failure(uri string, result json.RawMessage) error {
	if !bytes.HasPrefix(result, []byte(`{"error":`)) { // servers send JSON without blanks
		return nil
	}
	var wrapped map[string]json.RawMessage
	if err := json.Unmarshal(result, &wrapped); err != nil || len(wrapped) != 1 || string(wrapped["error"]) == "null" {
		return nil //nolint:nilerr // then it is a result
	}
	var inner struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal(wrapped["error"], &inner); err != nil || inner.Message == "" {
		inner.Message = string(wrapped["error"]) // it has a form of its own
	}
	return &FunctionError{URI: uri, Code: inner.Code, Message: inner.Message, Result: result}
}

// newID returns a UUID of version 4.
func newID() string {
	var random [16]byte
	rand.Read(random[:])
	random[6], random[8] = random[6]&0x0f|0x40, random[8]&0x3f|0x80
	b := make([]byte, 0, 36)
	for i, end := range [5]int{4, 6, 8, 10, 16} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, random[[5]int{0, 4, 6, 8, 10}[i]:end])
	}
	return string(b)
}
