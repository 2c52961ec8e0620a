package handover

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// The frame never changes: each version can read the first message of every other one.
//
//	magic    4 bytes  "CRHO"
//	length   4 bytes  of the body, big-endian, at most maxBody
//	body     JSON, one object
//
// Descriptors travel with the first byte of a frame (SCM_RIGHTS, unix(7)).
const (
	magic      = "CRHO"
	headerSize = 8

	// maxBody is many times the size of a message; above it the other side is not
	// cabrank, or broken.
	maxBody = 64 << 10

	// maxText bounds each text of a message. Texts end up in a log line.
	maxText = 2 << 10

	// maxSockets bounds how many listeners are handed over. There are five names; a
	// service manager may have more than one socket for a name.
	maxSockets = 16
)

// Versions of the protocol that this program speaks. A message or a field that an older
// side would have to understand needs a new version; a field that it may ignore does not.
const (
	oldestProtocol = 1
	newestProtocol = 1
)

// kind is the kind of a message. The comments say which side sends it.
type kind string

const (
	kindHello     kind = "hello"     // both, first: the new process, then the old
	kindProgress  kind = "progress"  // new: how far it is
	kindReady     kind = "ready"     // new: give me the listeners
	kindListeners kind = "listeners" // old: here they are, with descriptors
	kindServing   kind = "serving"   // new: I accept connections on them
	kindOver      kind = "over"      // old: I do not accept any more, and drain
	kindFailed    kind = "failed"    // both: this upgrade is given up
)

// message is every message; each kind uses the fields of its group.
type message struct {
	Kind kind `json:"kind"`

	// hello
	Oldest  int    `json:"oldest,omitempty"`  // protocol versions
	Newest  int    `json:"newest,omitempty"`  //
	Program string `json:"program,omitempty"` // version, for people
	PID     int    `json:"pid,omitempty"`
	Limit   int64  `json:"limit_ms,omitempty"` // new: how long it may take to be ready
	Workers int    `json:"workers,omitempty"`  // old: how many to begin with, 0: as configured
	Ports   []int  `json:"ports,omitempty"`    // old: of its workers, which may not listen there yet

	// progress
	Step   string `json:"step,omitempty"`
	Worker string `json:"worker,omitempty"`
	Note   string `json:"note,omitempty"`
	Done   int    `json:"done,omitempty"`
	Total  int    `json:"total,omitempty"`

	// listeners, in the order of the descriptors
	Sockets []socketNote `json:"sockets,omitempty"`

	// failed
	Error  string   `json:"error,omitempty"`
	Faults []string `json:"faults,omitempty"` // new: see Refuse
}

// socketNote describes a listener that is handed over.
type socketNote struct {
	Name    string `json:"name"`
	Asked   string `json:"asked"`             // address that the configuration asked for
	Manager bool   `json:"manager,omitempty"` // a service manager has made it
}

// errForeign means that the other side does not speak this protocol at all.
var errForeign = errors.New("not a message of cabrank")

// newFrame returns a message with its header.
func newFrame(m *message) ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if len(body) > maxBody {
		return nil, fmt.Errorf("message %s of %d bytes: at most %d are allowed", m.Kind, len(body), maxBody)
	}
	frame := binary.BigEndian.AppendUint32([]byte(magic), uint32(len(body)))
	return append(frame, body...), nil
}

// bodyLength reads a header.
func bodyLength(header []byte) (int, error) {
	if string(header[:len(magic)]) != magic {
		return 0, errForeign
	}
	length := binary.BigEndian.Uint32(header[len(magic):headerSize])
	if length > maxBody {
		return 0, fmt.Errorf("%w: it has %d bytes, at most %d are allowed", errForeign, length, maxBody)
	}
	return int(length), nil
}

// readBody reads and checks the message behind a header.
func readBody(r io.Reader, length int) (*message, error) {
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	return parseMessage(body)
}

// parseMessage reads a body. Unknown fields are ignored, an unknown kind is an error;
// characters that would spoil a log or a terminal are removed from texts.
func parseMessage(body []byte) (*message, error) {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, fmt.Errorf("%w: %w", errForeign, err)
	}
	switch m.Kind {
	case kindHello, kindProgress, kindReady, kindListeners, kindServing, kindOver, kindFailed:
	default:
		return nil, fmt.Errorf("%w: unknown kind %.20q", errForeign, m.Kind)
	}
	if len(m.Sockets) > maxSockets {
		return nil, fmt.Errorf("%w: %d listeners, at most %d are allowed", errForeign, len(m.Sockets), maxSockets)
	}
	for _, text := range []*string{&m.Program, &m.Step, &m.Worker, &m.Note, &m.Error} {
		*text = oneLine(*text)
	}
	for i, fault := range m.Faults {
		m.Faults[i] = oneLine(fault)
	}
	m.Limit, m.Workers = max(m.Limit, 0), max(m.Workers, 0)
	return &m, nil
}

// oneLine makes a text fit for a log line.
func oneLine(text string) string {
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "..."
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
}

// speaks checks the versions in the other side's hello. The error names both.
func (m *message) speaks() error {
	if m.Kind != kindHello {
		return fmt.Errorf("it began with the message %q in place of hello", m.Kind)
	}
	if m.Oldest > newestProtocol || m.Newest < oldestProtocol || m.Oldest > m.Newest {
		return fmt.Errorf("it is cabrank %s and speaks versions %d to %d of the handover, this one %d to %d: stop this one and start that",
			m.Program, m.Oldest, m.Newest, oldestProtocol, newestProtocol)
	}
	return nil
}
