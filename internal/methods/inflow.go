package methods

import (
	"errors"
	"fmt"
	"io"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/relay"
)

// readSize is how much of an answer is read at a time, at least.
const readSize = 512

// inflow is the messages of an answer.
//
// Life: the zero value with from and budget, next any number of times, free.
type inflow struct {
	from   *relay.LocalCall
	budget counter
	most   int // bytes of a message

	buf   []byte // what was read
	taken int    // of it
	held  int    // bytes counted in budget
}

// next returns the next message. It is good until the next call.
//
// Errors: io.EOF at the end of a whole answer; relay.ErrCallCut; a failure.
func (f *inflow) next() ([]byte, error) {
	rest := copy(f.buf, f.buf[f.taken:])
	f.buf, f.taken = f.buf[:rest], 0
	if err := f.fill(grpcwire.PrefixLen); err != nil {
		return nil, err
	}
	prefix, err := grpcwire.ParsePrefix(f.buf)
	switch {
	case err != nil:
		return nil, fail(grpcwire.Internal, "the worker does not speak gRPC")
	case prefix.Compressed:
		return nil, fail(grpcwire.Internal, "the worker has compressed its answer, which was not asked for")
	case int64(prefix.Length) > int64(f.most):
		return nil, fail(grpcwire.ResourceExhausted, fmt.Sprintf("a message of the answer is longer than %d MiB", f.most>>20))
	}
	whole := grpcwire.PrefixLen + int(prefix.Length)
	if err := f.fill(whole); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	f.taken = whole
	return f.buf[grpcwire.PrefixLen:whole], nil
}

// fill reads until n bytes are there.
func (f *inflow) fill(n int) error {
	for len(f.buf) < n {
		if err := f.grow(n); err != nil {
			return err
		}
		read, err := f.from.Read(f.buf[len(f.buf):cap(f.buf)])
		f.buf = f.buf[:len(f.buf)+read]
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) && len(f.buf) > 0 && len(f.buf) < n:
			return io.ErrUnexpectedEOF
		default:
			return err
		}
	}
	return nil
}

// grow makes room for more, up to want, at most twice as much as is there: memory follows
// what has come, not what was announced.
func (f *inflow) grow(want int) error {
	if cap(f.buf)-len(f.buf) >= min(readSize, want-len(f.buf)) {
		return nil
	}
	size := max(min(2*cap(f.buf), want), 2*readSize)
	if !f.budget.Take(size - f.held) {
		return fail(grpcwire.ResourceExhausted, "the answers of this caller take too much memory")
	}
	f.held = size
	grown := make([]byte, len(f.buf), size)
	copy(grown, f.buf)
	f.buf = grown
	return nil
}

func (f *inflow) free() {
	f.budget.Give(f.held)
	f.held = 0
}
