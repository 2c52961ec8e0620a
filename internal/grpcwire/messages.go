package grpcwire

import (
	"errors"
	"io"
)

// readSize is how much of a stream is read at a time, at least.
const readSize = 512

// Errors of Messages.
var (
	// ErrTooLong is that a message is longer than Messages.Most.
	ErrTooLong = errors.New("grpc message: too long")
	// ErrNoRoom is that Messages.Budget is used up.
	ErrNoRoom = errors.New("grpc message: no memory for it")
)

// Budget counts bytes that are held.
type Budget interface {
	Take(n int) bool // reports whether there is room
	Give(n int)      // gives back what was taken
}

// Messages reads the messages of a stream. Memory follows what has come, not what a prefix
// announces.
//
// Life: the zero value with From, Budget and Most; Next any number of times; Free.
type Messages struct {
	From   io.Reader
	Budget Budget
	Most   int // bytes of a message

	buf   []byte // what was read
	taken int    // of it
	held  int    // bytes counted in Budget
}

// Next returns the next message. It is good until the next call.
//
// Errors: io.EOF behind the last one, io.ErrUnexpectedEOF in one; ErrPrefixFlag, ErrTooLong,
// ErrNoRoom; those of From.
func (m *Messages) Next() (message []byte, compressed bool, err error) {
	rest := copy(m.buf, m.buf[m.taken:])
	m.buf, m.taken = m.buf[:rest], 0
	if err := m.fill(PrefixLen); err != nil {
		return nil, false, err
	}
	prefix, err := ParsePrefix(m.buf)
	if err != nil {
		return nil, false, err
	}
	if int64(prefix.Length) > int64(m.Most) {
		return nil, false, ErrTooLong
	}
	whole := PrefixLen + int(prefix.Length)
	if err := m.fill(whole); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, false, err
	}
	m.taken = whole
	return m.buf[PrefixLen:whole], prefix.Compressed, nil
}

// fill reads until n bytes are there.
func (m *Messages) fill(n int) error {
	for len(m.buf) < n {
		if err := m.grow(n); err != nil {
			return err
		}
		read, err := m.From.Read(m.buf[len(m.buf):cap(m.buf)])
		m.buf = m.buf[:len(m.buf)+read]
		switch {
		case err == nil || len(m.buf) >= n: // an end comes once more
		case errors.Is(err, io.EOF) && len(m.buf) > 0:
			return io.ErrUnexpectedEOF
		default:
			return err
		}
	}
	return nil
}

// grow makes room for more, up to want, at most twice as much as is there.
func (m *Messages) grow(want int) error {
	if cap(m.buf)-len(m.buf) >= min(readSize, want-len(m.buf)) {
		return nil
	}
	size := max(min(2*cap(m.buf), want), 2*readSize)
	if !m.Budget.Take(size - m.held) {
		return ErrNoRoom
	}
	m.held = size
	grown := make([]byte, len(m.buf), size)
	copy(grown, m.buf)
	m.buf = grown
	return nil
}

// Free gives the memory back.
func (m *Messages) Free() {
	m.Budget.Give(m.held)
	m.held, m.buf, m.taken = 0, nil, 0
}
