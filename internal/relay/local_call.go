package relay

import (
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/head"
)

// ErrCallCut is returned if a call has ended without its whole answer; Status says why.
var ErrCallCut = errors.New("relay: the call was cut off")

// LocalCall is a call of a Local, from its caller's side.
//
// Life: Local.Open opens the zero value, and Close closes it in any state; then it may be
// opened again. The results of Header and Trailer are valid until Close.
// Concurrency: one goroutine may write while another one reads. Cancel may be called
// from anywhere, from Open to Close.
type LocalCall struct {
	st       *shardState
	callerID *callers.ID
	wake     sync.Cond // for readers and writers

	// Guarded by the lock of the shard.
	local    *Local
	up       h2.Stream
	relayEnd *callerConn // counts the bytes that wait here
	head     []byte      // of the answer, encoded
	body     []byte
	taken    int // bytes of body that were read
	tail     []byte
	kept     int    // bytes that its caller holds for it, see Take
	held     int    // bytes counted in relayEnd.held: those, and body
	joined   bool   // the queue has taken it, or a worker
	refused  int    // HTTP status of Cabrank's answer to a call that was not taken
	rest     []byte // of the request, above the window
	end      bool   // rest is the end of the request
	begun    bool
	ended    bool // the answer is whole
	broken   bool // the answer was cut off
	code     grpcwire.Code
	message  string
}

// begin makes the call one of l. Called under the lock.
func (c *LocalCall) begin(l *Local) {
	c.up.Clear() // it must not be open
	c.st, c.local, c.callerID, c.relayEnd = l.st, l, l.callerID, l.relayEnd
	c.wake.L = l.st
	c.up.Owner = c
	c.code, c.message = grpcwire.Unknown, ""
}

// Write sends bytes of the request. It waits while the window is full.
//
// Errors: io.EOF if the answer has ended or the call was cut off.
func (c *LocalCall) Write(p []byte) (int, error) {
	c.st.Lock()
	defer c.st.Unlock()
	return c.write(p, false)
}

// CloseSend ends the request, once all of it is sent.
func (c *LocalCall) CloseSend() {
	c.st.Lock()
	defer c.st.Unlock()
	c.awaitSent()
	if conn := c.up.Conn(); conn != nil {
		conn.WriteData(&c.up, nil, true)
	}
}

func (c *LocalCall) write(p []byte, end bool) (n int, err error) {
	c.awaitSent()
	c.rest, c.end = p, end
	c.push()
	c.awaitSent()
	n = len(p) - len(c.rest)
	c.rest = nil
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Sent waits until all of LocalRequest.Body is sent, or the call has ended.
func (c *LocalCall) Sent() {
	c.st.Lock()
	defer c.st.Unlock()
	c.awaitSent()
	c.rest = nil
}

func (c *LocalCall) awaitSent() {
	for len(c.rest) > 0 && c.up.Conn() != nil && !c.up.LocalDone() {
		c.wake.Wait()
	}
}

// push writes rest as far as the window allows.
func (c *LocalCall) push() {
	for len(c.rest) > 0 {
		conn := c.up.Conn()
		if conn == nil || c.up.LocalDone() {
			return
		}
		room := min(conn.Writable(&c.up), len(c.rest))
		if room == 0 {
			conn.Want(&c.up)
			return
		}
		p := c.rest[:room]
		c.rest = c.rest[room:]
		conn.WriteData(&c.up, p, c.end && len(c.rest) == 0)
	}
}

// Taken waits until the queue has taken the call, and returns 0, or has refused it: then it
// returns the HTTP status 429 or 503, and Status has the message. A call that was taken may
// end in any way.
func (c *LocalCall) Taken() (refused int) {
	c.st.Lock()
	defer c.st.Unlock()
	for !c.joined && c.refused == 0 && !c.begun && !c.broken {
		c.wake.Wait()
	}
	if c.refused == 0 && !c.joined && !c.begun {
		return http.StatusServiceUnavailable
	}
	return c.refused
}

// Header waits for the beginning of the answer and returns its fields, with the status if
// that is the whole answer.
//
// Errors: ErrCallCut.
func (c *LocalCall) Header() (Fields, error) {
	c.st.Lock()
	defer c.st.Unlock()
	for !c.begun {
		if c.broken {
			return nil, ErrCallCut
		}
		c.wake.Wait()
	}
	return c.head, nil
}

// Read returns bytes of the answer, and waits for them. The worker gets credit for bytes
// that were read.
//
// Errors: io.EOF at the end of the answer; ErrCallCut.
func (c *LocalCall) Read(p []byte) (int, error) {
	c.st.Lock()
	defer c.st.Unlock()
	for c.taken == len(c.body) {
		switch {
		case c.ended:
			return 0, io.EOF
		case c.broken:
			return 0, ErrCallCut
		}
		c.wake.Wait()
	}
	n := copy(p, c.body[c.taken:])
	c.taken += n
	if conn := c.up.Conn(); conn != nil {
		conn.Credit(&c.up, n)
		c.moved()
	}
	if c.taken == len(c.body) {
		c.dropBody()
	}
	return n, nil
}

// Waits reports whether Read would wait.
func (c *LocalCall) Waits() bool {
	c.st.Lock()
	defer c.st.Unlock()
	return c.taken == len(c.body) && !c.ended && !c.broken
}

// Trailer returns the trailers of the answer, once Read has returned io.EOF.
func (c *LocalCall) Trailer() Fields {
	c.st.Lock()
	defer c.st.Unlock()
	return c.tail
}

// Status returns the status of the call, once Read or Header has returned an error: that of
// the answer, or gRPC's status for the way in which the call was cut off.
func (c *LocalCall) Status() (grpcwire.Code, string) {
	c.st.Lock()
	defer c.st.Unlock()
	return c.code, c.message
}

// Cancel ends the call, because its caller has left. It does nothing after the call's end.
func (c *LocalCall) Cancel() {
	c.st.Lock()
	defer c.st.Unlock()
	c.cancel()
}

func (c *LocalCall) cancel() {
	if conn := c.up.Conn(); conn != nil {
		conn.Reset(&c.up, h2.Cancel)
		c.cut(grpcwire.Cancelled, "")
	}
}

// Close frees the call, and cancels it if it has not ended. It does nothing to a call that
// is not open.
func (c *LocalCall) Close() {
	if c.st == nil {
		return
	}
	c.st.Lock()
	defer c.st.Unlock()
	c.release()
}

func (c *LocalCall) release() {
	c.cancel()
	c.dropBody()
	if c.relayEnd != nil {
		c.keep(-c.kept)
	}
	c.st.Pool().Put(c.head)
	c.st.Pool().Put(c.tail)
	c.head, c.tail = nil, nil
	c.begun, c.ended, c.broken, c.relayEnd = false, false, false, nil
	c.joined, c.refused, c.rest = false, 0, nil
	c.up.Clear()
}

// localCall returns the end of the call in this process, nil if its caller is elsewhere or gone.
func (c *call) localCall() *LocalCall {
	if c.caller == nil || c.caller.local == nil {
		return nil
	}
	s := c.caller.local.Stream(c.down.ID())
	if s == nil {
		return nil
	}
	return s.Owner.(*LocalCall)
}

// unread reports whether bytes of the answer wait for its reader.
func (c *LocalCall) unread() bool { return c != nil && c.taken < len(c.body) }

// moved tells the call that its caller has read bytes.
func (c *LocalCall) moved() {
	if s := c.relayEnd.link.Conn.Stream(c.up.ID()); s != nil {
		if call, ok := s.Owner.(*call); ok {
			call.idle = stall{}
		}
	}
}

// noteTaken tells a caller in this process that the call waits in the queue, or has a
// worker.
func (c *call) noteTaken() {
	if l := c.localCall(); l != nil && !l.joined {
		l.joined = true
		l.wake.Broadcast()
	}
}

// noteRefused tells a caller in this process that Cabrank refuses a call that the queue had
// not taken.
func (c *call) noteRefused(why *answer) {
	l := c.localCall()
	if l == nil || l.joined {
		return
	}
	l.refused = http.StatusServiceUnavailable
	if why.status == http.StatusTooManyRequests {
		l.refused = why.status
	}
	l.code, l.message = why.code, why.message // the answer will say the same
	l.wake.Broadcast()
}

// answerHeaders takes the head of the answer, or its trailers.
func (c *LocalCall) answerHeaders(b *h2.Block, end bool) {
	if c.begun {
		c.tail = c.st.Pool().Append(c.tail, b.Enc)
	} else {
		c.begun = true
		c.head = c.st.Pool().Append(c.head, b.Enc)
		c.code = grpcwire.CodeFromHTTP(b.Status)
	}
	if w, found := b.Watched(head.FieldGRPCStatus); found {
		c.readStatus(w.Value, b)
	}
	c.ended = end
	c.wake.Broadcast()
}

func (c *LocalCall) readStatus(value []byte, b *h2.Block) {
	code, ok := grpcwire.ParseCode(value)
	if !ok {
		code = grpcwire.Unknown
	}
	c.code = code
	if w, found := b.Watched(head.FieldGRPCMessage); found {
		c.message = string(grpcwire.DecodeMessage(nil, w.Value))
	}
}

func (c *LocalCall) answerData(p []byte, end bool) {
	if c.taken > len(c.body)/2 { // as in call.trimAnswer
		rest := copy(c.body, c.body[c.taken:])
		c.body, c.taken = c.body[:rest], 0
	}
	c.body = c.st.Pool().Append(c.body, p)
	c.count()
	c.ended = end
	c.wake.Broadcast()
}

// answerReset takes a RST_STREAM. After the whole answer it only says that the rest of the
// request is not wanted.
func (c *LocalCall) answerReset(code h2.ErrCode) {
	if c.ended {
		c.wake.Broadcast()
		return
	}
	if code == h2.RefusedStream {
		c.cut(grpcwire.Unavailable, "")
		return
	}
	c.cut(codeOfReset(code), "")
}

// cut ends the call without a whole answer.
func (c *LocalCall) cut(code grpcwire.Code, message string) {
	if !c.ended {
		c.broken, c.code, c.message = true, code, message
	}
	c.wake.Broadcast()
}

func (c *LocalCall) dropBody() {
	c.st.Pool().Put(c.body)
	c.body, c.taken = nil, 0
	c.count()
}

// count updates the bytes that wait here in the count of the connection, like those that
// wait in the call behind it (R11).
func (c *LocalCall) count() {
	if n := cap(c.body) + c.kept; n != c.held {
		c.relayEnd.held += n - c.held
		c.held = n
		c.relayEnd.updateClass()
	}
}

// Take counts n bytes that the caller holds for the call, and reports whether there is room.
func (c *LocalCall) Take(n int) bool {
	c.st.Lock()
	defer c.st.Unlock()
	if c.relayEnd == nil || c.st.relay.budget.Exceeded() {
		return false
	}
	c.keep(n)
	return true
}

// Give takes back n bytes of Take. Close gives back the rest.
func (c *LocalCall) Give(n int) {
	c.st.Lock()
	defer c.st.Unlock()
	if c.relayEnd != nil {
		c.keep(-n)
	}
}

func (c *LocalCall) keep(n int) {
	c.kept += n
	c.st.relay.budget.Add(int64(n))
	c.count()
}
