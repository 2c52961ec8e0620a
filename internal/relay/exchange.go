package relay

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/head"
)

// exchangeSize is the most memory that an exchange takes beside its buffers and its head:
// itself, the stack of its goroutine, and the arguments of an http.Handler.
const exchangeSize = 16 << 10

// headCopies is the number of copies of a head while it is read: the block, the list of
// fields, and the handler's own copy.
const headCopies = 3

// Head has the parts of a request that decide who serves it.
type Head struct {
	Method, Path, ContentType []byte // as the caller sent them; the path with its query
}

// Exchange is a request that code of this process answers. It is not a call, but a stream
// beside calls on the caller's connection.
//
// Life: made when the request's HEADERS have been read, served in a goroutine of its
// own (Options.Other), over when that has returned and the stream is closed. A caller
// that leaves ends the stream; the goroutine learns of it by Context and by errors. Until
// it returns a drain waits for it, and its memory counts as its caller's.
//
// Flow: bytes of the request wait here until they are read, at most a window, and reading
// gives credit back. A writer waits until the caller's windows and the connection's output
// buffer have taken its bytes.
//
// Concurrency: exported methods take the lock of the shard, and may be called by one
// goroutine that reads and one that writes. All other methods run under the lock.
type Exchange struct {
	st      *shardState
	caller  *callerConn
	address string
	stream  h2.Stream
	serve   func(*Exchange)
	ctx     context.Context //nolint:containedctx // the life of the exchange
	cancel  context.CancelFunc
	changed sync.Cond // bytes have come or were written, or the caller has gone

	// The request.
	head     []byte // its block; set before serve runs, immutable
	bodyless bool   // a HEAD request: its answer has no content
	body     []byte // unread from taken on
	taken    int
	trailers []byte // the block of its trailers
	reqEnd   bool

	// The answer.
	out      []byte // bytes that wait for the caller's window: of the waiting writer, or Cabrank's own
	outEnds  bool   // out is the end of the answer
	answered bool   // final response HEADERS were written

	begun   bool // a drain waits for it
	running bool // serve has not returned
	gone    bool // serve can do nothing more with it
	failed  bool // answered by Cabrank itself
	reading bool // serve waits for bytes of the request
	idle    uint32
	weight  int // bytes counted in the budget, without the pool's
	counted int // its bytes in callerConn.held
}

// newExchange returns an exchange for a new request.
func (st *shardState) newExchange(cc *callerConn, id *callers.ID, serve func(*Exchange)) *Exchange {
	x := &Exchange{st: st, caller: cc, address: id.Address, serve: serve, begun: true}
	x.stream.Owner = x
	x.changed.L = st
	st.calls++
	return x
}

// requestHeaders implements owner.
func (x *Exchange) requestHeaders(b *h2.Block, end bool, now time.Duration) {
	x.reqEnd = end
	switch {
	case x.gone:
		return
	case x.head != nil:
		x.trailers = append(x.trailers, b.Enc...)
		x.weigh(len(b.Enc))
		x.changed.Broadcast()
		return
	}
	x.readMethod(b)
	st, cc := x.st, x.caller
	if cc.crowdedOut(now) {
		x.fail(endedBuffer, now)
		return
	}
	x.head = append(make([]byte, 0, len(b.Enc)), b.Enc...)
	x.weigh(exchangeSize + headCopies*len(x.head))
	x.ctx, x.cancel = context.WithCancel(context.Background())
	x.running = true
	go x.run() // ends when serve returns, which Context asks for; a drain waits for it
	st.stalls.wind(now)
	st.shed(cc, now)
}

func (x *Exchange) readMethod(b *h2.Block) {
	verb, found := b.Watched(head.FieldMethod)
	x.bodyless = found && string(verb.Value) == http.MethodHead
}

// run serves the exchange.
func (x *Exchange) run() {
	defer x.served()
	x.serve(x)
}

// requestTooLarge implements owner.
func (x *Exchange) requestTooLarge(end bool, now time.Duration) {
	x.reqEnd = end
	x.readMethod(x.st.Block())
	x.fail(endedHeaders, now)
}

// requestData implements owner.
func (x *Exchange) requestData(p []byte, end bool, now time.Duration) {
	x.reqEnd = x.reqEnd || end
	x.idle = 0
	if x.gone {
		return
	}
	x.body = x.st.Pool().Append(x.body, p)
	x.count()
	x.changed.Broadcast()
	st, cc := x.st, x.caller
	st.shed(cc, now)
}

// pumpAnswer implements owner.
func (x *Exchange) pumpAnswer(time.Duration) { x.pump() }

// pump writes waiting bytes as far as the connection takes them.
func (x *Exchange) pump() {
	conn := x.stream.Conn()
	if conn == nil {
		return
	}
	for len(x.out) > 0 {
		n := min(conn.Writable(&x.stream), len(x.out))
		if n == 0 {
			conn.Want(&x.stream)
			return
		}
		conn.WriteData(&x.stream, x.out[:n], x.outEnds && n == len(x.out))
		x.out = x.out[n:]
		x.idle = 0
	}
	x.changed.Broadcast()
	if x.failed {
		x.close(h2.NoError)
	}
}

// abandoned implements owner.
func (x *Exchange) abandoned(time.Duration) {
	x.leave()
	x.close(h2.NoError)
}

// drained implements owner. Calls of the handler itself are answered now, and it has
// messageTime to pass the answers on.
func (x *Exchange) drained(time.Duration) {}

// cutOff implements owner.
func (x *Exchange) cutOff(now time.Duration) {
	x.fail(endedShutdown, now)
	x.close(h2.InternalError) // if the caller does not read it now
}

// fail ends the exchange with an answer of Cabrank's own, or with a reset if another
// answer has begun.
func (x *Exchange) fail(why ending, _ time.Duration) {
	conn := x.stream.Conn()
	if x.failed || conn == nil {
		return
	}
	x.st.tally.refused[why]++
	x.leave()
	if x.answered {
		x.close(h2.InternalError)
		return
	}
	x.failed = true
	a := &x.st.relay.answers[why]
	conn.WriteHeaders(&x.stream, x.bodyless, a.http)
	if x.bodyless {
		x.close(h2.NoError)
		return
	}
	x.out, x.outEnds = a.body, true
	x.pump()
}

// leave tells serve that the exchange is over, and frees its buffers.
func (x *Exchange) leave() {
	if x.gone {
		return
	}
	x.gone = true
	if x.cancel != nil {
		x.cancel() // it runs no code of ours under the lock
	}
	x.st.Pool().Put(x.body)
	x.body, x.taken, x.out = nil, 0, nil
	x.count()
	x.changed.Broadcast()
}

// close ends the stream, if it is open, and the exchange, if serve has returned.
func (x *Exchange) close(code h2.ErrCode) {
	if conn := x.stream.Conn(); conn != nil {
		if x.stream.LocalDone() { // the caller may be sending still (RFC 9113 8.1)
			code = h2.NoError
		}
		conn.Reset(&x.stream, code)
	}
	x.settle()
}

// served is called when serve has returned, and ends a stream that serve left open.
func (x *Exchange) served() {
	x.st.do(func() {
		x.running = false
		if !x.gone {
			x.leave()
			x.close(h2.InternalError)
			return
		}
		x.settle()
	})
}

// settle counts the exchange out once serve has returned and the stream is closed. It tells
// the connection as soon as the stream is closed.
func (x *Exchange) settle() {
	if x.stream.Open() {
		return
	}
	x.caller.callEnded()
	if !x.running && x.begun {
		x.begun = false
		x.weigh(-x.weight)
		x.st.callFinished()
	}
}

// weigh counts n more bytes that are not the pool's.
func (x *Exchange) weigh(n int) {
	x.weight += n
	x.st.relay.budget.Add(int64(n))
	x.count()
}

// count updates the exchange's bytes in the count of its connection.
func (x *Exchange) count() {
	n := x.weight + cap(x.body)
	x.caller.held += n - x.counted
	x.counted = n
	x.caller.updateClass()
}

// awaitsCaller reports whether the exchange waits for its caller to send or to read bytes.
func (x *Exchange) awaitsCaller() bool { return x.reading || len(x.out) > 0 }
