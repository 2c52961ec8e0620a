package oldjuggler

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
)

// Protocol is the name of the WebSocket subprotocol.
const Protocol = "juggler.0"

// Types of messages, as they are on the wire.
const (
	Call  = 1
	Pub   = 2
	Sub   = 3
	Unsub = 4
	Nack  = 7
	Ack   = 8
	Res   = 9
	Event = 10

	// Expired is raised by the client for itself and never sent.
	Expired = 256
)

// UUID is an id in its usual text, or nothing.
//
// Shape: 36 characters with hyphens, which "urn:uuid:" may precede.
type UUID string

// NewUUID returns a random one, version 4.
func NewUUID() UUID {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return UUID(hyphenate(b[:]))
}

func hyphenate(b []byte) string {
	h := hex.EncodeToString(b)
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// UnmarshalText reads one as the programs of the time did: nothing is an id, too.
func (u *UUID) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "" {
		return nil
	}
	if len(s) == 45 && strings.EqualFold(s[:9], "urn:uuid:") {
		s = s[9:]
	}
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return errors.New("not a uuid")
	}
	b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	if err != nil || len(b) != 16 {
		return errors.New("not a uuid")
	}
	*u = UUID(hyphenate(b))
	return nil
}

// Message is a frame of either direction.
type Message struct {
	Meta    Meta            `json:"meta"`
	Payload json.RawMessage `json:"payload"`
}

// Meta is what every message has.
type Meta struct {
	Type int  `json:"type"`
	UUID UUID `json:"uuid"`
}

// request is the payload of what a client may send. Each type has keys of its own;
// others are ignored, whatever they are.
type request struct {
	call callPayload
	pub  pubPayload
	sub  subPayload
}

type (
	callPayload struct {
		URI     string          `json:"uri"`
		Timeout int64           `json:"timeout"` // ns
		Args    json.RawMessage `json:"args"`
	}
	pubPayload struct {
		Channel string          `json:"channel"`
		Args    json.RawMessage `json:"args"`
	}
	subPayload struct {
		Channel string `json:"channel"`
		Pattern bool   `json:"pattern"`
	}
)

// payloadOf reads the payload of a message.
func payloadOf(m Message) (r request, err error) {
	switch m.Meta.Type {
	case Call:
		err = json.Unmarshal(m.Payload, &r.call)
	case Pub:
		err = json.Unmarshal(m.Payload, &r.pub)
	default:
		err = json.Unmarshal(m.Payload, &r.sub)
	}
	return r, err
}

// Answer is the payload of all that a server may send.
type Answer struct {
	For     UUID            `json:"for"`
	ForType int             `json:"for_type"`
	URI     string          `json:"uri"`
	Channel string          `json:"channel"`
	Pattern string          `json:"pattern"`
	Args    json.RawMessage `json:"args"`
	Code    int             `json:"code"`
	Message string          `json:"message"`
}

// The payloads as a server writes them: the order of fields counts, for whoever
// compares bytes.
type (
	ackPayload struct {
		For     UUID   `json:"for"`
		ForType int    `json:"for_type"`
		URI     string `json:"uri,omitempty"`
		Channel string `json:"channel,omitempty"`
	}
	nackPayload struct {
		For     UUID   `json:"for"`
		ForType int    `json:"for_type"`
		URI     string `json:"uri,omitempty"`
		Channel string `json:"channel,omitempty"`
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	resPayload struct {
		For  UUID            `json:"for"`
		URI  string          `json:"uri,omitempty"`
		Args json.RawMessage `json:"args"`
	}
	eventPayload struct {
		For     UUID            `json:"for"`
		Channel string          `json:"channel,omitempty"`
		Pattern string          `json:"pattern,omitempty"`
		Args    json.RawMessage `json:"args"`
	}
)
