package socket

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/cabrank/cabrank/internal/broker"
)

// nackCode is the code of all errors without a code.
const nackCode = 500

// codeOf returns the code of a Nack.
func codeOf(err error) int {
	if own, ok := errors.AsType[*broker.CodeError](err); ok {
		return own.Code
	}
	return nackCode
}

// answer is a message of the server. Empty texts are left out, but for the id.
type answer struct {
	kind    Kind
	id      messageID // of the message that it answers
	forKind Kind      // of Ack and Nack
	uri     string
	channel string
	pattern string
	code    int             // of Nack
	message string          // of Nack
	args    json.RawMessage // of Res and Evnt: valid JSON, or nil for null

	// Only in juggler.1.
	content broker.Content // of args
	more    bool           // this Res is not the last
	failed  bool           // this Res is an error that juggler.0 does not tell
	user    string         // of Welcome, and of the Ack of a token
	ttl     int64          // of the same, in milliseconds
	welcome *welcome
}

// appendTo appends the message as json.Encoder would write it: with a newline, the
// letters <, > and & escaped, values without blanks. It appends nothing if juggler.0 cannot
// express the answer.
func (a answer) appendTo(b []byte) []byte {
	if a.kind > Evnt || a.kind < Nack || a.failed {
		return b
	}
	b = append(b, `{"meta":{"type":`...)
	b = strconv.AppendInt(b, int64(a.kind), 10)
	b = append(b, `,"uuid":"`...)
	b = broker.AppendID(b)
	b = append(b, `"},"payload":{"for":"`...)
	b = append(b, a.id...)
	b = append(b, '"')
	if a.kind == Ack || a.kind == Nack {
		b = append(b, `,"for_type":`...)
		b = strconv.AppendInt(b, int64(a.forKind), 10)
	}
	b = appendField(b, `,"uri":`, a.uri)
	b = appendField(b, `,"channel":`, a.channel)
	b = appendField(b, `,"pattern":`, a.pattern)
	switch a.kind { //nolint:exhaustive // the others have nothing more
	case Nack:
		b = append(b, `,"code":`...)
		b = strconv.AppendInt(b, int64(a.code), 10)
		b = append(b, `,"message":`...)
		b = appendText(b, a.message)
	case Res, Evnt:
		b = append(b, `,"args":`...)
		b = appendValue(b, a.args)
	}
	return append(b, "}}\n"...)
}

func appendField(b []byte, key, text string) []byte {
	if text == "" {
		return b
	}
	return appendText(append(b, key...), text)
}

// appendText appends a text as JSON.
func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(text) //nolint:errchkjson // texts always are JSON
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}

// appendValue appends a JSON value without blanks and with letters escaped.
func appendValue(b []byte, value json.RawMessage) []byte {
	if value == nil {
		return append(b, "null"...)
	}
	value = validUTF8(value)
	if !bytes.ContainsAny(value, " \t\r\n<>&") && !bytes.Contains(value, []byte("\xe2\x80")) {
		return append(b, value...)
	}
	var compact, escaped bytes.Buffer
	if err := json.Compact(&compact, value); err != nil {
		return append(b, "null"...) // cannot happen: the value was checked before
	}
	json.HTMLEscape(&escaped, compact.Bytes())
	return append(b, escaped.Bytes()...)
}
