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

// The frame never changes: whatever versions meet, each can read what the other
// says first.
//
//	magic    4 bytes  "CRHO"
//	length   4 bytes  of the body, big-endian, at most maxBody
//	body     JSON, one object
//
// Descriptors travel with the first byte of a frame (SCM_RIGHTS, unix(7)).
const (
	magic      = "CRHO"
	headerSize = 8

	// maxBody is many times what a message needs; above it the other side is no
	// cabrank, or broken.
	maxBody = 64 << 10

	// maxText bounds each text of a message. Texts end up in a log line.
	maxText = 2 << 10

	// maxSockets bounds how many listeners change hands at once. There are four
	// names; a service manager may have more than one socket for one.
	maxSockets = 16
)

// Versions of the protocol that this program speaks. A message or a field that
// an older side would not understand needs a new number; fields that it may
// ignore do not.
const (
	oldestProtocol = 1
	newestProtocol = 1
)

// kind says what a message is. The comments say who sends it.
type kind string

const (
	kindHello     kind = "hello"     // both, first: the new process, then the old
	kindProgress  kind = "progress"  // new: how far it is
	kindReady     kind = "ready"     // new: give me the listeners
	kindListeners kind = "listeners" // old: here they are, with descriptors
	kindServing   kind = "serving"   // new: connections are accepted on them
	kindOver      kind = "over"      // old: it was the last word, I drain
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
	Ports   []int  `json:"ports,omitempty"`    // old: those of its workers, who need not listen there yet

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

// socketNote describes a listener that changes hands.
type socketNote struct {
	Name    string `json:"name"`
	Asked   string `json:"asked"`             // address that the configuration asked for
	Manager bool   `json:"manager,omitempty"` // a service manager has made it
}

// errForeign says that the other side does not speak this language at all.
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

// parseMessage reads a body. What it does not know it ignores, except the kind
// of the message; texts lose what would spoil a log or a terminal.
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
