package socket

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/cabrank/cabrank/internal/broker"
)

// Fields of a Frame and of its messages. Source: proto/cabrank/socket/v1/socket.proto.
const (
	fieldType       = 1
	fieldNumber     = 2
	fieldText       = 3
	fieldURI        = 4
	fieldChannel    = 5
	fieldPattern    = 6
	fieldJSON       = 7
	fieldProtobuf   = 8
	fieldTimeout    = 9
	fieldCredit     = 10
	fieldMore       = 11
	fieldError      = 12
	fieldToken      = 13
	fieldUser       = 14
	fieldTTL        = 15
	fieldVersion    = 16
	fieldConnection = 17
	fieldPing       = 18
	fieldLimits     = 19
	fieldAuth       = 20

	fieldErrorCode    = 1
	fieldErrorMessage = 2
	fieldErrorJSON    = 3

	fieldLimitMessage       = 1
	fieldLimitCalls         = 2
	fieldLimitSubscriptions = 3
	fieldLimitName          = 4
	fieldLimitEvents        = 5
)

// errProto does not wrap the library's errors, whose words change.
var errProto = errors.New("not a Frame of cabrank.socket.v1")

// parseProto reads a message of juggler.1.proto.
//
// Shape: a Frame. A fault of a field is in request.refused.
// Errors: errProto, which ends the socket.
// Concurrency: the result does not refer to message.
func parseProto(message []byte, rest func()) (request, error) {
	f := fields{rest: rest}
	var refused error // the first
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return request{}, errProto
		}
		message = message[n:]
		switch kind {
		case protowire.VarintType:
			v, n := protowire.ConsumeVarint(message)
			if n < 0 {
				return request{}, errProto
			}
			message = message[n:]
			refused = cmp.Or(refused, f.number(int(number), v))
		case protowire.BytesType:
			v, n := protowire.ConsumeBytes(message)
			if n < 0 {
				return request{}, errProto
			}
			message = message[n:]
			why, ok := f.bytes(int(number), v)
			if !ok {
				return request{}, errProto
			}
			refused = cmp.Or(refused, why)
		case protowire.Fixed32Type, protowire.Fixed64Type, protowire.StartGroupType, protowire.EndGroupType:
			n := protowire.ConsumeFieldValue(number, kind, message)
			if n < 0 {
				return request{}, errProto
			}
			message = message[n:]
		}
	}
	return f.request(refused), nil
}

// number takes in a number field. An error refuses the message.
func (f *fields) number(number int, v uint64) error {
	switch number {
	case fieldType:
		f.kind, f.name = unknownKind, strconv.FormatUint(v, 10)
		if v < math.MaxInt32 && kindOf(Kind(v).String()) == Kind(v) {
			f.kind = Kind(v)
		}
	case fieldNumber:
		if v > mostNumber {
			return refuse("number: not up to 2^53-1")
		}
		f.id = numberID(v)
	case fieldTimeout:
		f.timeout = float64(v)
	case fieldCredit:
		f.streams, f.credit = true, float64(v)
	}
	return nil
}

// bytes takes in a text or bytes field. An error refuses the message; ok is false if a text
// is not UTF-8, and then it is not a Frame.
func (f *fields) bytes(number int, v []byte) (refused error, ok bool) {
	switch number {
	case fieldJSON:
		f.content, f.args = broker.JSON, nil
		if len(v) > 0 && (!utf8.Valid(v) || !isJSON(v, f.rest)) {
			return refuse("json: not valid JSON"), true
		}
		if len(v) > 0 {
			f.args = append(json.RawMessage(nil), v...)
		}
		return nil, true
	case fieldProtobuf:
		f.content, f.args = broker.Protobuf, append(json.RawMessage{}, v...)
		return nil, true
	case fieldText:
		if len(v) > mostID {
			return refuse("text: more than %d bytes", mostID), true
		}
		f.id = textID(string(v))
		return nil, utf8.Valid(v)
	}
	text := f.text(number)
	if text == nil {
		return nil, true
	}
	*text = string(v)
	return nil, utf8.Valid(v)
}

// text returns where the value of a text field goes; nil for fields that clients do not
// send.
func (f *fields) text(number int) *string {
	switch number {
	case fieldURI:
		return &f.uri
	case fieldChannel:
		return &f.channel
	case fieldPattern:
		return &f.pattern
	case fieldToken:
		return &f.token
	}
	return nil
}

// appendProto appends a message of juggler.1.proto.
func appendProto(b []byte, a *answer) []byte {
	b = appendVarint(b, fieldType, int64(a.kind))
	b = appendID(b, a)
	switch a.kind { //nolint:exhaustive // the others have nothing more
	case Nack:
		b = appendFailure(b, a.code, a.message, nil)
	case Res:
		b = appendProtoResult(b, a)
	case Evnt, Sub, Unsub, Gap:
		b = appendString(b, fieldChannel, a.channel)
		b = appendString(b, fieldPattern, a.pattern)
		b = appendContent(b, a)
	case Welcome:
		b = appendProtoWelcome(b, a.welcome)
	}
	b = appendString(b, fieldUser, a.user)
	return appendVarint(b, fieldTTL, a.ttl)
}

// appendID appends the id of a request, or of an event.
func appendID(b []byte, a *answer) []byte {
	switch {
	case a.kind == Evnt:
		return appendString(b, fieldText, string(a.id))
	case a.id == "":
		return b
	case a.id[0] == '"':
		// An empty text is sent as well.
		return protowire.AppendString(protowire.AppendTag(b, fieldText, protowire.BytesType), a.id.text())
	}
	var n uint64
	for _, digit := range []byte(a.id) {
		n = n*10 + uint64(digit-'0')
	}
	return protowire.AppendVarint(protowire.AppendTag(b, fieldNumber, protowire.VarintType), n)
}

func appendProtoResult(b []byte, a *answer) []byte {
	if raw := a.failure(); raw != nil {
		var failure struct {
			Code    int32  `json:"code"`
			Message string `json:"message"`
		}
		_ = json.Unmarshal(raw, &failure) // an invalid code is 0; the whole error is sent, too
		return appendFailure(b, int(failure.Code), failure.Message, raw)
	}
	b = appendContent(b, a)
	if a.more {
		b = appendVarint(b, fieldMore, 1)
	}
	return b
}

// appendContent appends arguments, if any.
func appendContent(b []byte, a *answer) []byte {
	switch {
	case a.args == nil:
		return b
	case a.content == broker.Protobuf:
		return protowire.AppendBytes(protowire.AppendTag(b, fieldProtobuf, protowire.BytesType), a.args)
	}
	return protowire.AppendBytes(protowire.AppendTag(b, fieldJSON, protowire.BytesType), validUTF8(a.args))
}

func appendFailure(b []byte, code int, message string, whole json.RawMessage) []byte {
	var inner []byte
	inner = appendVarint(inner, fieldErrorCode, int64(code))
	inner = appendString(inner, fieldErrorMessage, message)
	if whole != nil {
		inner = protowire.AppendBytes(protowire.AppendTag(inner, fieldErrorJSON, protowire.BytesType), validUTF8(whole))
	}
	return protowire.AppendBytes(protowire.AppendTag(b, fieldError, protowire.BytesType), inner)
}

func appendProtoWelcome(b []byte, w *welcome) []byte {
	b = appendString(b, fieldVersion, Protocol1)
	b = appendString(b, fieldConnection, w.connection)
	b = appendVarint(b, fieldPing, w.ping)
	var inner []byte
	inner = appendVarint(inner, fieldLimitMessage, w.limits.message)
	inner = appendVarint(inner, fieldLimitCalls, int64(w.limits.calls))
	inner = appendVarint(inner, fieldLimitSubscriptions, int64(w.limits.subscriptions))
	inner = appendVarint(inner, fieldLimitName, int64(w.limits.name))
	inner = appendVarint(inner, fieldLimitEvents, w.limits.events)
	b = protowire.AppendBytes(protowire.AppendTag(b, fieldLimits, protowire.BytesType), inner)
	return appendVarint(b, fieldAuth, w.auth)
}

// appendVarint appends a number; zero is left out. A negative one has ten bytes, as
// int32 has in protobuf.
func appendVarint(b []byte, number protowire.Number, v int64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(v))
}

// appendString appends a text, which is UTF-8 in protobuf; an empty one is left out.
func appendString(b []byte, number protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), strings.ToValidUTF8(text, "\uFFFD"))
}
