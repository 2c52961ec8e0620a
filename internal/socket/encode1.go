package socket

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/cabrank/cabrank/internal/broker"
)

// welcome is the first message of juggler.1. Times are in milliseconds.
type welcome struct {
	connection string
	ping       int64
	auth       int64 // 0: no token is needed
	limits     limits
}

// limits are what a client should keep to.
type limits struct {
	message, events            int64 // bytes
	calls, subscriptions, name int
}

// appendJSON appends a message of juggler.1.
func appendJSON(b []byte, a *answer) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, a.kind.String()...)
	b = append(b, '"')
	switch {
	case a.id == "":
	case a.kind == Evnt:
		b = appendField(b, `,"id":`, string(a.id))
	default:
		b = append(b, `,"id":`...)
		b = append(b, a.id...)
	}
	switch a.kind { //nolint:exhaustive // the others have nothing more
	case Nack:
		b = append(b, `,"error":`...)
		b = appendError(b, a.code, a.message)
	case Res:
		b = appendResult(b, a)
	case Evnt:
		b = appendField(b, `,"channel":`, a.channel)
		b = appendField(b, `,"pattern":`, a.pattern)
		b = appendArgs(b, `,"args":`, a.args)
	case Sub, Unsub, Gap:
		b = appendField(b, `,"channel":`, a.channel)
		b = appendField(b, `,"pattern":`, a.pattern)
	case Welcome:
		b = appendWelcome(b, a.welcome)
		b = appendIdentity(b, a)
	case Ack:
		b = appendIdentity(b, a)
	}
	return append(b, '}')
}

func appendError(b []byte, code int, message string) []byte {
	b = append(b, `{"code":`...)
	b = strconv.AppendInt(b, int64(code), 10)
	b = append(b, `,"message":`...)
	b = appendText(b, message)
	return append(b, '}')
}

// appendResult appends the content of a Res: a result, or an error.
func appendResult(b []byte, a *answer) []byte {
	if failure := a.failure(); failure != nil {
		return appendArgs(b, `,"error":`, failure)
	}
	b = appendArgs(b, `,"args":`, a.args)
	if a.more {
		b = append(b, `,"more":true`...)
	}
	return b
}

// appendArgs appends a JSON value as it is, with invalid UTF-8 replaced: otherwise the
// client would end the socket.
func appendArgs(b []byte, key string, args json.RawMessage) []byte {
	if args == nil {
		return b
	}
	return append(append(b, key...), validUTF8(args)...)
}

func validUTF8(args []byte) []byte {
	if utf8.Valid(args) {
		return args
	}
	return bytes.ToValidUTF8(args, []byte("\uFFFD"))
}

func appendIdentity(b []byte, a *answer) []byte {
	b = appendField(b, `,"user":`, a.user)
	return appendNumber(b, `,"ttl":`, a.ttl)
}

func appendNumber(b []byte, key string, n int64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(append(b, key...), n, 10)
}

func appendWelcome(b []byte, w *welcome) []byte {
	b = appendField(b, `,"version":`, Protocol1)
	b = appendField(b, `,"connection":`, w.connection)
	for _, n := range []struct {
		key   string
		value int64
	}{
		{`,"ping":`, w.ping},
		{`,"limits":{"message":`, w.limits.message},
		{`,"calls":`, int64(w.limits.calls)},
		{`,"subscriptions":`, int64(w.limits.subscriptions)},
		{`,"name":`, int64(w.limits.name)},
		{`,"events":`, w.limits.events},
	} {
		b = strconv.AppendInt(append(b, n.key...), n.value, 10)
	}
	b = append(b, '}')
	return appendNumber(b, `,"auth":`, w.auth)
}

// failure returns the error in a result, as JSON; nil if the result is not an error. An
// error is an object with the only member "error", which is an object with a message.
func (a *answer) failure() json.RawMessage {
	if a.more || a.content != broker.JSON || !beginsAsError(a.args) {
		return nil
	}
	var result map[string]json.RawMessage
	if json.Unmarshal(a.args, &result) != nil || len(result) != 1 {
		return nil
	}
	var failure struct {
		Message *string `json:"message"`
	}
	if json.Unmarshal(result["error"], &failure) != nil || failure.Message == nil {
		return nil
	}
	return result["error"]
}

// beginsAsError is a quick check, which fails for most results.
func beginsAsError(args []byte) bool {
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(args, " \t\r\n"), []byte("{"))
	return ok && bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(`"error"`))
}
