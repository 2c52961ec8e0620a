package socket

import "github.com/cabrank/cabrank/internal/broker"

// The WebSocket subprotocols.
const (
	// Protocol is the old protocol, kept for old clients. Source: docs/juggler.md.
	Protocol = "juggler.0"
	// Protocol1 is the protocol for new clients. Source: docs/juggler.md.
	Protocol1 = "juggler.1"
	// Protocol1Proto has the same messages as protobuf, in binary frames.
	Protocol1Proto = "juggler.1.proto"
)

// dialect is the encoding of a subprotocol.
type dialect uint8

const (
	juggler0 dialect = iota
	juggler1
	juggler1Proto
	dialects // how many there are
)

// protocols are the subprotocols in the order in which they are preferred.
func protocols() []string { return []string{Protocol1Proto, Protocol1, Protocol} }

// dialectOf returns the dialect of the agreed subprotocol.
func dialectOf(protocol string) dialect {
	switch protocol {
	case Protocol1:
		return juggler1
	case Protocol1Proto:
		return juggler1Proto
	}
	return juggler0
}

// isNew is true for dialects that tell their clients why something was refused or has
// ended, where juggler.0 is silent.
func (d dialect) isNew() bool { return d != juggler0 }

// opcode is the opcode of its messages, in both directions.
func (d dialect) opcode() byte {
	if d == juggler1Proto {
		return opBinary
	}
	return opText
}

// parse reads a message, and calls rest between the parts of a long one. An error ends the
// socket. The result does not refer to message.
func (d dialect) parse(message []byte, rest func()) (request, error) {
	switch d {
	case juggler1:
		return parseJSON(message, rest)
	case juggler1Proto:
		return parseProto(message, rest)
	case juggler0, dialects:
	}
	return parse(message, rest)
}

// append appends an answer; nothing if the dialect cannot express it.
func (d dialect) append(b []byte, a *answer) []byte {
	switch d {
	case juggler1:
		return appendJSON(b, a)
	case juggler1Proto:
		return appendProto(b, a)
	case juggler0, dialects:
	}
	return a.appendTo(b)
}

// frameOf makes a frame of an answer; nil if the dialect cannot express it.
func frameOf(d dialect, a *answer, of *account) *frame {
	b := d.append(make([]byte, frameHeader, frameHeader+256+len(a.args)), a)
	if len(b) == frameHeader {
		return nil
	}
	return newFrame(withHeader(b, d.opcode()), of)
}

func (s *session) frameOf(a answer) *frame { return frameOf(s.dialect, &a, &s.account) }

// resultOf is frameOf for a result.
//
// Errors: errLong, errMemory.
func (s *session) resultOf(a answer) (*frame, error) {
	if n := len(a.args); n > scarceBytes && !s.account.has(n) {
		if s.server.shed(); !s.account.has(n) {
			return nil, errMemory
		}
	}
	f := s.frameOf(a)
	if s.dialect.isNew() && s.server.isTooLong(f) {
		f.drop()
		return nil, errLong
	}
	return f, nil
}

// eventID is the id of the event that a PUB publishes. Subscribers rely on its form.
func (d dialect) eventID(id messageID) string {
	if !d.isNew() {
		return string(id)
	}
	var uuid messageID
	if text := id.text(); len(text) == 36 && uuid.UnmarshalText([]byte(text)) == nil {
		return string(uuid)
	}
	return broker.NewID()
}

// topic is the topic of a SUB or UNSB. The empty pattern is the empty channel, which is all
// that it matches: Redis does not tell their events apart.
func (r *request) topic() broker.Topic {
	return broker.Topic{Name: r.channel, Pattern: r.pattern && r.channel != ""}
}
