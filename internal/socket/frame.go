package socket

import (
	"encoding/binary"
	"sync/atomic"
)

// Opcodes of frames that a server sends. Source: RFC 6455, section 5.2.
const (
	opText   = 1
	opBinary = 2
	opClose  = 8
	opPing   = 9
	opPong   = 10
)

// frameHeader is the longest header of a payload that is not masked.
const frameHeader = 10

// frame is a WebSocket frame, ready to be written, which several sockets may share.
//
// Life: newFrame or newEvent, retain for each further queue, drop by each.
// Concurrency: the bytes never change; retain and drop may be called from anywhere.
type frame struct {
	bytes []byte
	of    *account
	refs  atomic.Int32
}

// control makes a frame of at most 125 bytes.
func control(op byte, payload []byte) []byte {
	return withHeader(append(make([]byte, frameHeader, frameHeader+len(payload)), payload...), op)
}

// withHeader writes the header right before the payload, which begins at frameHeader.
// Source: RFC 6455, section 5.2; one frame is one message.
func withHeader(b []byte, op byte) []byte {
	n := len(b) - frameHeader
	from := frameHeader - 2
	switch {
	case n < 126:
		b[from+1] = byte(n)
	case n < 1<<16:
		from = frameHeader - 4
		b[from+1] = 126
		binary.BigEndian.PutUint16(b[from+2:], uint16(n))
	default:
		from = 0
		b[from+1] = 127
		binary.BigEndian.PutUint64(b[from+2:], uint64(n))
	}
	b[from] = 0x80 | op
	return b[from:]
}

// newFrame makes a frame that has to be sent, even beyond the budget.
func newFrame(b []byte, of *account) *frame {
	f := &frame{bytes: b, of: of}
	f.refs.Store(1)
	of.force(f.memory())
	return f
}

// frameBytes is the memory of a frame beside its bytes.
const frameBytes = 64

// memory is the memory of a frame, with the unused rest of its array.
func (f *frame) memory() int { return cap(f.bytes) + frameBytes }

// retain adds a reference, for one more queue.
func (f *frame) retain() *frame {
	f.refs.Add(1)
	return f
}

// drop gives up one reference.
func (f *frame) drop() {
	if f.refs.Add(-1) == 0 {
		f.of.Give(f.memory())
	}
}
