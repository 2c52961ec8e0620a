package socket

import (
	"errors"
	"io"
)

// bodySize is the size of a message up to which no more memory is needed.
const bodySize = 4 << 10

// body is the buffer for the messages of a socket, one after the other. Between messages
// it has no memory: most sockets are idle.
type body struct {
	session *session
	server  *Server
	bytes   []byte
}

func (s *session) newBody() *body { return &body{session: s, server: s.server} }

// readFrom reads a whole message. Errors: that of the socket, or errBudget.
func (b *body) readFrom(r io.Reader) error {
	space, _ := b.server.bodies.Get().(*[]byte)
	b.bytes = (*space)[:0]
	for {
		if len(b.bytes) == cap(b.bytes) {
			if err := b.grow(); err != nil {
				return err
			}
		}
		n, err := r.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// grow doubles the space, up to the longest message.
func (b *body) grow() error {
	has := cap(b.bytes)
	longest := int(b.server.options.ReadLimit) + bodySize
	more := has
	if has < longest {
		more = min(has, longest-has)
	}
	if !b.server.take(&b.session.account, more) {
		return errBudget
	}
	b.session.incoming.Add(int64(more))
	b.bytes = append(make([]byte, 0, has+more), b.bytes...)
	return nil
}

// shrink gives the space back.
func (b *body) shrink() {
	b.session.dropIncoming()
	if cap(b.bytes) > bodySize {
		b.bytes = nil
	}
	if b.bytes != nil {
		space := b.bytes[:0]
		b.bytes = nil
		b.server.bodies.Put(&space)
	}
}

func (b *body) free() { b.shrink() }
