package socket

import (
	"errors"
	"io"
)

// bodySize is what a message may have without more memory being asked for.
const bodySize = 4 << 10

// body is where the messages of a socket are read into, one after the other. Between
// messages it has no memory: most sockets are idle.
type body struct {
	server *Server
	bytes  []byte
	taken  int // of the budget
}

func (s *Server) newBody() *body { return &body{server: s} }

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

// grow doubles the space.
func (b *body) grow() error {
	more := cap(b.bytes)
	if !b.server.budget.take(more) {
		b.server.shed()
		if !b.server.budget.take(more) {
			return errBudget
		}
	}
	b.taken += more
	b.bytes = append(make([]byte, 0, 2*more), b.bytes...)
	return nil
}

// shrink gives the space back.
func (b *body) shrink() {
	if b.taken > 0 {
		b.server.budget.give(b.taken)
		b.taken, b.bytes = 0, nil
		return
	}
	if b.bytes != nil {
		space := b.bytes[:0]
		b.bytes = nil
		b.server.bodies.Put(&space)
	}
}

func (b *body) free() { b.shrink() }
