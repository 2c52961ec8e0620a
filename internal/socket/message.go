package socket

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/broker"
)

// Kind is the type of a message, as it is on the wire.
type Kind int

// Kinds of messages, and which side sends them. Source: docs/juggler.md.
const (
	Call    Kind = 1  // client: {"uri","timeout","args"}
	Pub     Kind = 2  // client: {"channel","args"}
	Sub     Kind = 3  // client: {"channel","pattern"}
	Unsub   Kind = 4  // client: {"channel","pattern"}
	Nack    Kind = 7  // server: {"for","for_type","uri","channel","code","message"}
	Ack     Kind = 8  // server: {"for","for_type","uri","channel"}
	Res     Kind = 9  // server: {"for","uri","args"}
	Evnt    Kind = 10 // server: {"for","channel","pattern","args"}
	Cancel  Kind = 11 // client; this and the kinds below only in juggler.1, see docs/juggler.md
	Credit  Kind = 12 // client
	Token   Kind = 13 // client: auth
	Ping    Kind = 14 // client
	Pong    Kind = 15 // server
	Welcome Kind = 16 // server
	Exp     Kind = 17 // server
	Gap     Kind = 18 // server
)

// String returns the name of the kind in the protocol.
func (k Kind) String() string {
	switch k {
	case Call:
		return "call"
	case Pub:
		return "pub"
	case Sub:
		return "sub"
	case Unsub:
		return "unsb"
	case Nack:
		return "nack"
	case Ack:
		return "ack"
	case Res:
		return "res"
	case Evnt:
		return "evnt"
	case Cancel:
		return "cancel"
	case Credit:
		return "credit"
	case Token:
		return "auth"
	case Ping:
		return "ping"
	case Pong:
		return "pong"
	case Welcome:
		return "welcome"
	case Exp:
		return "exp"
	case Gap:
		return "gap"
	case unknownKind:
	}
	return "unknown"
}

// requestKinds are the kinds that a client may announce.
func requestKinds() []Kind { return []Kind{Call, Pub, Sub, Unsub} }

// longTimeout is the timeout of a call that asks for less than a millisecond.
const longTimeout = time.Minute

// request is a message of a client.
type request struct {
	kind    Kind
	id      messageID
	uri     string        // of a Call
	timeout time.Duration // of a Call; negative: to be refused
	channel string        // of all others
	pattern bool          // of Sub and Unsub
	args    json.RawMessage

	// Only in juggler.1.
	content broker.Content // of args
	streams bool           // a Call that takes several results
	credit  int            // of such a Call, and of Credit
	token   string         // of Token
	refused error          // the fault for which it will be refused
}

// size is the memory of a request until it is answered.
func (r *request) size() int {
	const ofAny, ofCall = 512, 1536
	n := ofAny + len(r.args) + len(r.uri) + len(r.channel)
	if r.kind == Call {
		n += ofCall
	}
	return n
}

// refuse marks the request as refused, and keeps the first reason.
func (r *request) refuse(why error) {
	if r.refused == nil {
		r.refused = why
	}
}

// errKind refuses a message by its type.
var errKind = errors.New("not a type that a client may send")

// parse reads a frame.
//
// Shape: one JSON object as encoding/json reads it; the text after it is ignored.
// Errors: every error ends the socket.
// Concurrency: the result does not refer to body.
func parse(body []byte, rest func()) (request, error) {
	var long []byte
	if len(body) > longText {
		var err error
		if body, long, _, err = split(body, "payload", rest); err != nil {
			return request{}, err
		}
	}
	var envelope struct {
		Meta struct {
			Type Kind      `json:"type"`
			UUID messageID `json:"uuid"`
		} `json:"meta"`
		Payload json.RawMessage `json:"payload"`
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&envelope); err != nil {
		return request{}, err
	}
	r := request{kind: envelope.Meta.Type, id: envelope.Meta.UUID}
	if long != nil {
		envelope.Payload = long
	}
	err := r.parsePayload(envelope.Payload, rest)
	return r, err
}

// parsePayload reads only the keys of each kind: others may be anything.
func (r *request) parsePayload(payload json.RawMessage, rest func()) error {
	var args []byte
	if len(payload) > longText {
		var err error
		if payload, args, _, err = split(payload, "args", rest); err != nil {
			return err
		}
		args = bytes.Clone(args)
	}
	switch r.kind {
	case Call:
		var p struct {
			URI     string          `json:"uri"`
			Timeout int64           `json:"timeout"`
			Args    json.RawMessage `json:"args"`
		}
		if err := json.Unmarshal(payload, &p); err != nil {
			return err
		}
		r.uri, r.timeout, r.args = p.URI, time.Duration(p.Timeout).Truncate(time.Millisecond), either(args, p.Args)
		if r.timeout == 0 {
			r.timeout = longTimeout
		}
	case Pub:
		var p struct {
			Channel string          `json:"channel"`
			Args    json.RawMessage `json:"args"`
		}
		if err := json.Unmarshal(payload, &p); err != nil {
			return err
		}
		r.channel, r.args = p.Channel, either(args, p.Args)
	case Sub, Unsub:
		var p struct {
			Channel string `json:"channel"`
			Pattern bool   `json:"pattern"`
		}
		if err := json.Unmarshal(payload, &p); err != nil {
			return err
		}
		r.channel, r.pattern = p.Channel, p.Pattern
	default:
		return errKind
	}
	return nil
}

// either returns a if it is not nil, else b.
func either(a, b []byte) []byte {
	if a != nil {
		return a
	}
	return b
}

// messageID is a UUID in 36 characters of lower case, or empty.
type messageID string

var errID = errors.New("not a UUID of 36 characters")

// UnmarshalText reads a UUID in letters of either case; "urn:uuid:" may precede it, and
// the text may be empty. Other forms of a UUID are not accepted.
func (id *messageID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	const urn = "urn:uuid:"
	if len(text) == len(urn)+36 && strings.EqualFold(string(text[:len(urn)]), urn) {
		text = text[len(urn):]
	}
	if len(text) != 36 {
		return errID
	}
	for i, b := range text {
		hyphen := i == 8 || i == 13 || i == 18 || i == 23
		if hyphen != (b == '-') || !hyphen && !isHex(b) {
			return errID
		}
	}
	*id = messageID(bytes.ToLower(text))
	return nil
}

func isHex(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F'
}
