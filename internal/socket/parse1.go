package socket

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/cabrank/cabrank/internal/broker"
)

// Bounds of fields of juggler.1. Source: docs/juggler.md.
const (
	mostID      = 64            // bytes
	mostNumber  = 1<<53 - 1     // the largest exact integer of JavaScript
	mostTimeout = math.MaxInt32 // milliseconds
	mostCredit  = 1000          // results that a call may send before it waits
	mostType    = 40            // bytes of a type that its refusal shows
	minute      = 60_000 * 1.   // of a call without a timeout, in milliseconds
	unknownKind = Kind(0)       // of a message that is refused for its type
)

// fields is a message of a client, not checked yet.
type fields struct {
	kind    Kind
	name    string // of the type, if it is unknown
	id      messageID
	uri     string
	channel string
	pattern string
	token   string
	timeout float64
	streams bool // credit was given
	credit  float64
	content broker.Content
	args    json.RawMessage
	rest    func() // called between the parts of a long value
}

// parseJSON reads a message of juggler.1.
//
// Shape: one JSON object. A fault of a field is in request.refused.
// Errors: message is not an object, which ends the socket.
// Concurrency: the result does not refer to message.
func parseJSON(message []byte, rest func()) (request, error) {
	var args []byte
	if len(message) > longText {
		short, value, behind, err := split(message, "args", rest)
		switch {
		case err != nil:
			return request{}, err
		case len(bytes.TrimSpace(behind)) > 0:
			return request{}, errTrailing
		}
		message, args = short, bytes.Clone(value)
	}
	var m struct {
		Type    string          `json:"type"`
		ID      json.RawMessage `json:"id"`
		URI     string          `json:"uri"`
		Channel string          `json:"channel"`
		Pattern string          `json:"pattern"`
		Token   string          `json:"token"`
		Timeout float64         `json:"timeout"`
		Credit  *float64        `json:"credit"`
		Args    json.RawMessage `json:"args"`
	}
	err := json.Unmarshal(message, &m)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
	case !errors.As(err, &wrong):
		return request{}, err
	case wrong.Field == "":
		return request{}, errObject
	}
	if bytes.Equal(bytes.TrimSpace(message), []byte("null")) { // Unmarshal returns no error for it
		return request{}, errObject
	}
	f := fields{
		kind: kindOf(m.Type), name: m.Type, uri: m.URI, channel: m.Channel, pattern: m.Pattern,
		token: m.Token, timeout: m.Timeout, streams: m.Credit != nil, args: either(args, m.Args),
	}
	if f.streams {
		f.credit = *m.Credit
	}
	var refused error
	if f.id, refused = parseID(m.ID); refused == nil && wrong != nil {
		refused = refuse("%s: not a %s", wrong.Field, kindOfValue(wrong.Type))
	}
	return f.request(refused), nil
}

// kindOfValue is the word for the type of a field.
func kindOfValue(t reflect.Type) string {
	if t.Kind() == reflect.String {
		return "text"
	}
	return "number"
}

var errObject = errors.New("no JSON object")

// refuse returns the refusal of a faulty message.
func refuse(format string, args ...any) error {
	return &broker.CodeError{Code: codeRequest, Text: fmt.Sprintf(format, args...)}
}

// parseID reads an id, and returns it as JSON in canonical form; "" without an id.
func parseID(raw json.RawMessage) (messageID, error) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "", nil
	case raw[0] == '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil || len(text) > mostID {
			return "", refuse("id: a text of more than %d bytes", mostID)
		}
		return textID(text), nil
	}
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil || n > mostNumber {
		return "", refuse("id: not a whole number from 0 to 2^53-1, nor a text")
	}
	return numberID(n), nil
}

func numberID(n uint64) messageID  { return messageID(strconv.AppendUint(nil, n, 10)) }
func textID(text string) messageID { return messageID(appendText(nil, text)) }

// text returns an id that is a text, in juggler.1; "" if it is a number.
func (id messageID) text() (text string) {
	if len(id) < 2 || id[0] != '"' {
		return ""
	}
	text = string(id[1 : len(id)-1])
	for i := range len(text) {
		if text[i] == '\\' {
			_ = json.Unmarshal([]byte(id), &text) // cannot fail: textID made it
			break
		}
	}
	return text
}

// request makes a request of the fields, refused if they have a fault.
func (f *fields) request(refused error) request {
	r := request{kind: f.kind, id: f.id, args: f.args, content: f.content, token: f.token}
	if refused == nil {
		refused = f.check()
	}
	if refused != nil {
		r.refused, r.args = refused, nil
		return r
	}
	switch f.kind { //nolint:exhaustive // the others have nothing more
	case Call:
		ms := f.timeout
		if ms == 0 {
			ms = minute
		}
		r.uri, r.timeout = f.uri, time.Duration(math.Ceil(ms))*time.Millisecond
		r.streams, r.credit = f.streams, int(min(f.credit, mostCredit))
	case Credit:
		r.credit = int(min(f.credit, mostCredit))
	case Pub:
		r.channel = f.channel
	case Sub, Unsub:
		r.channel, r.pattern = f.channel, false
		if f.pattern != "" {
			r.channel, r.pattern = f.pattern, true
		}
	}
	return r
}

// check returns the fault of a message, or nil.
func (f *fields) check() error {
	switch f.kind {
	case Call:
		switch {
		case f.id == "":
			return refuse("id: a call needs one")
		case f.uri == "":
			return refuse("uri: a call needs one")
		case f.timeout < 0 || f.timeout > mostTimeout:
			return refuse("timeout: not from 1 to 2^31-1 milliseconds")
		case f.credit > mostTimeout || f.credit < 0 || f.credit != math.Trunc(f.credit):
			return refuse("credit: not a whole number from 0 to 2^31-1")
		}
	case Credit:
		if f.credit < 1 || f.credit > mostTimeout || f.credit != math.Trunc(f.credit) {
			return refuse("credit: not a whole number from 1 to 2^31-1")
		}
	case Pub:
		switch {
		case f.channel == "":
			return refuse("channel: an event needs one")
		case f.content != broker.JSON:
			return errContent
		}
	case Sub, Unsub:
		if (f.channel == "") == (f.pattern == "") {
			return refuse("channel, pattern: one of them is needed")
		}
	case Token, Cancel, Ping:
	default:
		return &broker.CodeError{Code: codeUnknown, Text: fmt.Sprintf("no type %q for a client", cut(f.name, mostType))}
	}
	return nil
}

// cut shortens a text to whole letters of so many bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// kindOf reads the type of a message of a client.
func kindOf(name string) Kind {
	switch name {
	case "call":
		return Call
	case "pub":
		return Pub
	case "sub":
		return Sub
	case "unsb":
		return Unsub
	case "cancel":
		return Cancel
	case "credit":
		return Credit
	case "auth":
		return Token
	case "ping":
		return Ping
	}
	return unknownKind
}
