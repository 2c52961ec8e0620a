package webcall

import (
	"errors"
	"io"
	"sync/atomic"

	"github.com/cabrank/cabrank/internal/grpcwire"
)

// PieceSize is how much of a request or an answer is passed on at a time.
const PieceSize = 8 << 10

// Body is the body of a request on its way to a call.
type Body struct {
	From   io.Reader
	Length int64 // of the body as it comes, -1: not known
	Ended  bool  // nothing follows what First has returned

	broken atomic.Pointer[End]
}

// FaultError is what is wrong with a body, in words for its caller.
type FaultError string

// Error implements error.
func (e FaultError) Error() string { return string(e) }

// told returns what a caller is told: what a connection says names addresses.
func told(err error) error {
	if f := FaultError(""); err == nil || errors.As(err, &f) {
		return err
	}
	return FaultError("the request has broken off")
}

// First returns the body if it is short: one whose length is known is there soon.
//
// Errors: FaultError.
func (b *Body) First() ([]byte, error) {
	if b.Length < 0 || b.Length > PieceSize {
		return nil, nil
	}
	all, err := io.ReadAll(io.LimitReader(b.From, b.Length))
	b.Ended = err == nil
	return all, told(err)
}

// Send passes the body on as it comes, until the call takes no more of it.
func (b *Body) Send(to Call) {
	piece := make([]byte, PieceSize)
	for {
		n, err := b.From.Read(piece)
		if n > 0 {
			if _, gone := to.Write(piece[:n]); gone != nil {
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			to.CloseSend()
			return
		case err != nil:
			b.Break(to, &End{Code: grpcwire.InvalidArgument, Message: "cabrank: " + told(err).Error()})
			return
		}
	}
}

// Break ends a call whose request is not what it should be.
func (b *Body) Break(call Ender, why *End) {
	b.broken.Store(why)
	call.Cancel()
}
