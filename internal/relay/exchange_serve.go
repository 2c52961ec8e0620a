package relay

import (
	"context"
	"errors"
	"io"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/h2"
)

// ErrGone is returned after the caller of an exchange has left, or the exchange has ended.
var ErrGone = errors.New("relay: the caller has gone")

// errTwoWriters is returned to a second goroutine that writes at the same time.
var errTwoWriters = errors.New("relay: two goroutines write at a time")

// mostRead is the most that one Read copies under the lock of the shard, bytes.
const mostRead = 64 << 10

// Context ends when the caller leaves, the exchange is ended, or serve returns.
func (x *Exchange) Context() context.Context { return x.ctx }

// Address is the caller's, without port; empty for Unix sockets.
func (x *Exchange) Address() string { return x.address }

// Local returns the Local that makes calls for the connection of the exchange. It is on the
// same shard and ends with the connection.
func (x *Exchange) Local() *Local {
	cc := x.caller
	return cc.st.localOf(&cc.doorCalls, &cc.callerID, cc.source, cc.link.Closed)
}

// Head returns the fields of the request, without those that only doors may set.
func (x *Exchange) Head() []h2.Field { return callers.Unclaimed(x.head) }

// Ended reports whether the request is complete and Read has returned all of it.
func (x *Exchange) Ended() (ended bool) {
	x.st.do(func() { ended = x.reqEnd && x.taken == len(x.body) })
	return ended
}

// Read returns bytes of the request, and waits for them. Reading gives the caller credit
// back.
//
// Errors: io.EOF after the last byte, ErrGone.
func (x *Exchange) Read(p []byte) (n int, err error) {
	x.st.Lock()
	defer x.st.Unlock()
	for len(p) > 0 && x.taken == len(x.body) && !x.reqEnd && !x.gone {
		x.reading = true
		x.changed.Wait()
	}
	x.reading = false
	switch rest := x.body[x.taken:]; {
	case len(p) == 0:
		return 0, nil
	case len(rest) > 0:
		n = copy(p, rest[:min(len(rest), mostRead)])
		x.took(n)
		return n, nil
	case x.gone: // unread bytes are lost
		return 0, ErrGone
	default:
		return 0, io.EOF
	}
}

// took gives credit back for bytes that were read, and frees their memory like trimAnswer.
func (x *Exchange) took(n int) {
	x.taken += n
	if conn := x.stream.Conn(); conn != nil {
		conn.Credit(&x.stream, n)
	}
	if 2*x.taken < len(x.body) {
		return
	}
	rest := copy(x.body, x.body[x.taken:])
	x.body, x.taken = x.body[:rest], 0
	if rest == 0 {
		x.st.Pool().Put(x.body)
		x.body = nil
		x.count()
	}
}

// Trailers returns the trailers of the request, filtered like Head, once Read has returned
// io.EOF; nil: the request has no trailers.
func (x *Exchange) Trailers() []h2.Field {
	var block []byte
	x.st.do(func() { block = x.trailers })
	if block == nil {
		return nil
	}
	return callers.Unclaimed(block)
}

// WriteInterim writes a 1xx answer, unless the final answer has begun.
func (x *Exchange) WriteInterim(block []byte) {
	x.st.do(func() {
		if conn := x.stream.Conn(); conn != nil && !x.gone && !x.answered {
			conn.WriteHeaders(&x.stream, false, block)
		}
	})
}

// WriteHead writes the head of the answer, or with end its trailers. end ends the answer.
//
// Errors: ErrGone.
func (x *Exchange) WriteHead(block []byte, end bool) error {
	x.st.Lock()
	defer x.st.Unlock()
	conn := x.stream.Conn()
	if conn == nil || x.gone {
		return ErrGone
	}
	x.answered = true
	conn.WriteHeaders(&x.stream, end, block)
	return nil
}

// Write writes p and waits until the connection has taken all of it. end ends the answer.
// It returns how many bytes were taken; the caller may not have them yet.
//
// Errors: ErrGone.
func (x *Exchange) Write(p []byte, end bool) (int, error) {
	x.st.Lock()
	defer x.st.Unlock()
	conn := x.stream.Conn()
	switch {
	case conn == nil || x.gone:
		return 0, ErrGone
	case len(x.out) > 0:
		return 0, errTwoWriters
	case len(p) == 0 && end:
		conn.WriteData(&x.stream, nil, true)
		return 0, nil
	}
	x.out, x.outEnds = p, end
	for x.pump(); len(x.out) > 0 && !x.gone; {
		x.changed.Wait()
	}
	if x.gone {
		return 0, ErrGone
	}
	return len(p), nil
}

// Reset ends the exchange without an answer, or in the middle of one.
func (x *Exchange) Reset(code h2.ErrCode) {
	x.st.do(func() {
		x.leave()
		x.close(code)
	})
}
