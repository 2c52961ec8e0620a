package trace

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
)

const (
	// sampled is the flag of a trace that is recorded. Workers get it, and that its id is random.
	sampled, passedOn = 0x01, 0x03
	// parentLen is the length of a traceparent of version 00.
	parentLen = 55
)

// ID is the id of a span; zero: none.
type ID [8]byte

// Context says of which trace and which span a call is a part.
type Context struct {
	Trace [16]byte
	Span  ID
	Flags byte
}

// newID returns a random id. The runtime has a ChaCha8 for each thread, without a lock.
func newID() (id ID) {
	for id == (ID{}) {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

// Parse reads the value of a traceparent field, and allocates nothing.
//
// Shape: VERSION-TRACE-SPAN-FLAGS of 2, 32, 16 and 2 hexadecimal digits in lower case; above
// version 00 more may follow another hyphen.
// Errors: for all else ok is false, and the call has no trace context.
// Source: W3C Trace Context, Level 2, sections 3.2 and 4.3.
func Parse(field []byte) (c Context, ok bool) {
	if len(field) < parentLen || field[2] != '-' || field[35] != '-' || field[52] != '-' || bytes.ContainsAny(field[:parentLen], "ABCDEF") {
		return Context{}, false
	}
	var ends [2]byte // version and flags
	for _, part := range [...]struct{ into, digits []byte }{
		{ends[:1], field[:2]}, {c.Trace[:], field[3:35]}, {c.Span[:], field[36:52]}, {ends[1:], field[53:parentLen]},
	} {
		if _, err := hex.Decode(part.into, part.digits); err != nil {
			return Context{}, false
		}
	}
	later := len(field) > parentLen
	if c.Trace == [16]byte{} || c.Span == (ID{}) || ends[0] == 0xff || later && (ends[0] == 0 || field[parentLen] != '-') {
		return Context{}, false
	}
	c.Flags = ends[1] & passedOn
	return c, true
}

// Append appends the value of a traceparent field of version 00.
func (c Context) Append(to []byte) []byte {
	to = hex.AppendEncode(append(to, "00-"...), c.Trace[:])
	to = hex.AppendEncode(append(to, '-'), c.Span[:])
	return hex.AppendEncode(append(to, '-'), []byte{c.Flags})
}
