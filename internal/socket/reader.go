package socket

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"time"
)

// readBuffer is the size of each socket's read buffer; a longer message passes through it
// in parts. It is longer than a control frame, and than the 256 bytes below which
// gorilla/websocket makes a buffer of its own.
const readBuffer = 512

var (
	errBinary  = errors.New("a frame of the other kind")
	errUTF8    = errors.New("text that is not UTF-8")
	errAllowed = errors.New("a message that was not announced")
	errBudget  = errors.New("no memory for a message")
	errOver    = errors.New("the socket has ended")
)

// hijacker gives gorilla/websocket a buffer of this package, for the library does not tell
// whether it has read more than a message.
type hijacker struct {
	http.ResponseWriter

	in   *bufio.Reader
	from *turns // of in
}

// Hijack implements http.Hijacker.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil || rw.Reader.Buffered() > 0 {
		return nc, rw, err // the library refuses a client that has not waited for the answer
	}
	h.from = &turns{Conn: nc}
	h.in = bufio.NewReaderSize(h.from, readBuffer)
	return nc, bufio.NewReadWriter(h.in, rw.Writer), nil
}

// read reads messages until none is left and the socket sleeps; then it returns nil. At the
// end of the socket it returns why.
func (s *session) read() error {
	body := s.newBody()
	defer body.free()
	for {
		if err := s.next(body); err != nil {
			return err
		}
		if s.in.Buffered() > 0 {
			continue
		}
		if s.turns.rest(); s.sleep() {
			return nil
		}
	}
}

// next reads one message, or one control frame.
func (s *session) next(body *body) error {
	if _, err := s.in.Peek(1); err != nil {
		return err
	}
	s.reading.Store(time.Now().UnixNano()) // until the message is whole, or the socket ends
	if taken, err := s.nextControl(); taken || err != nil {
		return err
	}
	kind, r, err := s.ws.NextReader()
	if err != nil {
		return err
	}
	if s.server.echo == nil && kind != int(s.dialect.opcode()) {
		return errBinary
	}
	if err := body.readFrom(r); err != nil {
		return err
	}
	s.reading.Store(0)
	if !s.pace() {
		return errOver
	}
	if err := s.took(kind, body.bytes); err != nil {
		return err
	}
	body.shrink()
	return s.hear()
}

func (s *session) took(kind int, message []byte) error {
	if echo := s.server.echo; echo != nil {
		return echo(s, kind, message)
	}
	return s.take(message)
}

// nextControl takes the next frame if it is a ping or a pong. The library would take it,
// too, but not return before the next message. Malformed frames are left to the library.
// Source: RFC 6455, section 5.2.
func (s *session) nextControl() (taken bool, err error) {
	const final, masked, most = 0x80, 0x80, 125
	head, err := s.in.Peek(2)
	if err != nil {
		return false, err
	}
	op, n := head[0]&^final, int(head[1]&^masked)
	if head[0]&final == 0 || head[1]&masked == 0 || n > most || op != opPing && op != opPong {
		return false, nil
	}
	frame, err := s.in.Peek(2 + 4 + n)
	if err != nil {
		return false, err
	}
	payload := make([]byte, n)
	for i := range payload {
		payload[i] = frame[6+i] ^ frame[2+i%4]
	}
	if _, err := s.in.Discard(len(frame)); err != nil {
		return false, err
	}
	s.reading.Store(0)
	if op == opPing {
		return true, s.onPing(string(payload))
	}
	return true, s.onPong("")
}

// hear notes that the client lives.
func (s *session) hear() error {
	s.heard.Store(time.Now().UnixNano())
	s.pinged.Store(false)
	return nil
}

func (s *session) onPong(string) error {
	if !s.pace() {
		return errOver
	}
	return s.hear()
}

func (s *session) onPing(payload string) error {
	s.out.reply(newFrame(control(opPong, []byte(payload)), &s.account))
	if s.awaitRoom() != nil || !s.pace() {
		return errOver
	}
	return s.hear()
}
