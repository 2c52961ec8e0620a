package relay

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
)

// exchangeSize is what an exchange takes beside its buffers and its head, at most:
// itself, the stack of its goroutine, and what an http.Handler is given.
const exchangeSize = 16 << 10

// headCopies is how often a head is there while it is read: as a block, as a list of
// fields, and as what the handler makes of that.
const headCopies = 3

// Head is what of a request says who serves it.
type Head struct {
	Method, Path, ContentType []byte // as the caller has sent them; the path with its query
}

// Exchange is a request, and its answer, that code of this process serves: no call,
// but a stream beside calls on the connection of its caller.
//
// Life: made when the request's HEADERS have been read, served in a goroutine of its
// own (Options.Other), over when that has returned and the stream is closed. A caller
// that leaves ends the stream; the goroutine is told by Context and by errors, and
// counts in a drain and in what its caller holds until it returns.
//
// Flow: what the caller sends lies here until it is read, at most a window, and
// credit goes back as it is read. What is written is handed to the connection as the
// caller's windows and the connection's output buffer take it; the writer waits.
//
// Concurrency: exported methods take the lock of the shard, and may be called by one
// goroutine that reads and one that writes. All others run under it.
type Exchange struct {
	st      *stand
	caller  *callerConn
	address string
	stream  h2.Stream
	serve   func(*Exchange)
	ctx     context.Context //nolint:containedctx // the life of the exchange
	cancel  context.CancelFunc
	changed sync.Cond // something has come or was written, or the caller has gone

	// The request.
	head     []byte // its block; set before serve runs, and not changed
	bodyless bool   // HEAD: no answer has content
	body     []byte // what was not read yet begins at taken
	taken    int
	trailers []byte // their block
	reqEnd   bool

	// The answer.
	out      []byte // what waits for the caller's window: of the writer, who waits, or of our own
	outEnds  bool   // nothing follows it
	answered bool   // final response HEADERS were written

	begun   bool // it holds up a drain, see enter
	running bool // serve has not returned
	gone    bool // nothing more is taken from, or done for, serve
	failed  bool // by an answer of cabrank's own
	reading bool // serve waits for bytes of the caller
	idle    uint32
	weight  int // bytes of the budget, beside the pool's
	counted int // bytes of it in callerConn.held
}

// newExchange returns the exchange of a request that begins.
func (st *stand) newExchange(cc *callerConn, w *who, serve func(*Exchange)) *Exchange {
	x := &Exchange{st: st, caller: cc, address: w.Address, serve: serve, begun: true}
	x.stream.Owner = x
	x.changed.L = st
	st.calls++
	return x
}

// otherwise asks who serves a request that is no call; nil: nobody. What comes from
// this process is a call: the one that serves others may have made it.
func (cc *callerConn) otherwise(b *h2.Block) (serve func(*Exchange)) {
	other := cc.st.relay.settings().Other
	if other == nil || cc.local != nil || cc.form != nil && b.Same != 0 && cc.form.same == b.Same { // a call, as the last one
		return nil
	}
	contentType, _ := b.Watched(fieldContentType)
	method, _ := b.Watched(fieldMethod)
	if grpcwire.IsGRPC(contentType.Value) && string(method.Value) == http.MethodPost {
		return nil
	}
	path, found := b.Watched(fieldPath)
	if !found { // CONNECT, or a list that was cut off
		return nil
	}
	return other(Head{method.Value, path.Value, contentType.Value})
}

// requestHead implements owner.
func (x *Exchange) requestHead(b *h2.Block, end bool, now time.Duration) {
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
	verb, found := b.Watched(fieldMethod)
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

// pump hands the connection what it takes now of what waits.
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

// drained implements owner. What the handler waits for, such as a call of its own, is
// answered now, and it has messageTime to pass that on.
func (x *Exchange) drained(time.Duration) {}

// cutOff implements owner.
func (x *Exchange) cutOff(now time.Duration) {
	x.fail(endedShutdown, now)
	x.close(h2.InternalError) // if the caller does not take it now
}

// fail ends the exchange with an answer of cabrank's own, or if there is the
// beginning of another one by a reset.
func (x *Exchange) fail(why ending, _ time.Duration) {
	conn := x.stream.Conn()
	if x.failed || conn == nil {
		return
	}
	x.st.stats.refused[why]++
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

// leave has serve know that there is nothing more to do, and frees what waits.
func (x *Exchange) leave() {
	if x.gone {
		return
	}
	x.gone = true
	if x.cancel != nil {
		x.cancel() // no code of ours runs by it here
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

// served is told that serve has returned, and ends what it has left open.
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

// settle counts an exchange out of which nothing is left. Its connection is told as
// soon as the stream is closed.
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

// weigh counts n bytes more that are not of the pool.
func (x *Exchange) weigh(n int) {
	x.weight += n
	x.st.relay.budget.Add(int64(n))
	x.count()
}

// count keeps what the exchange holds among what waits for its connection.
func (x *Exchange) count() {
	n := x.weight + cap(x.body)
	x.caller.held += n - x.counted
	x.counted = n
	x.caller.sort()
}

// awaitsCaller reports whether the exchange goes on only when its caller does
// something: it sends more, or takes what waits.
func (x *Exchange) awaitsCaller() bool { return x.reading || len(x.out) > 0 }
