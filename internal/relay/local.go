package relay

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/shard"
)

// localIdle is how long the connection of a Local is kept without a call. It takes
// some 6 KiB, and making another one some microseconds.
const localIdle = time.Second

// ErrTooManyCalls is returned by Open when as many calls are open as one connection
// may have (Options.MaxStreams).
var ErrTooManyCalls = errors.New("relay: too many calls are open")

// ErrClosed is returned by Open when the relay takes no more calls, or the Local was
// closed.
var ErrClosed = errors.New("relay: closed")

var errLocalClosed = errors.New("caller in this process has left")

// Local is a caller in this process: code that makes calls without a socket. They
// are calls like all others, over a connection in memory: the same queue, deadlines,
// limits and flow control.
//
// It is for doors that do not speak HTTP/2 themselves. One for each connection of
// such a door is meant, so that what bounds a connection (Options.MaxStreams, Limits)
// bounds each of its callers. That for web pages opens a call for each request,
// writes its body and reads the answer as they come; that for WebSocket sessions
// makes unary calls and streams from goroutines of its own. A Local without a call
// costs next to nothing: its connection is made for the first one, and ends a
// second after the last.
//
// Life: ServeLocal, any number of calls, Close. At the end of Relay.Drain, and after Close,
// it takes no more calls: until then who has it may not have been told to leave.
// Concurrency: every method may be called from anywhere, but not under the lock of a
// shard.
type Local struct {
	st       *shardState
	callerID *callerID

	// Of the calls that a door makes for a connection that it shares with the relay.
	authenticated bool    // who they are has been asked by the door
	source        *source // of the connection; nil: the door has counted it

	// Guarded by the lock of the shard.
	link     *shard.Link // for the next call; nil: there is none yet, or any more
	relayEnd *callerConn // its other end
	ready    sync.Cond   // its greeting is over, or it has ended
	closed   bool
}

// ServeLocal takes a caller in this process. Whoever calls it bounds how many there
// are: they go with connections of a door, which count in Limits.Connections.
func (r *Relay) ServeLocal(c Caller) *Local {
	st := r.next()
	l := &Local{st: st, authenticated: true}
	l.ready.L = st
	st.do(func() {
		id := st.newCallerID(c)
		l.callerID = &id
	})
	return l
}

// localOf returns the caller by which doors make the calls of a connection.
func (st *shardState) localOf(id *callerID, from *source) *Local {
	l := &Local{st: st, callerID: id, source: from}
	l.ready.L = st
	return l
}

// Fields is a header list in the form in which it is passed on.
type Fields = h2.Fields

// LocalRequest is how a call begins.
type LocalRequest struct {
	Head   Fields      // :method, :scheme, :path, :authority and the rest, as gRPC has it: the door's own word
	Header http.Header // what the door's caller has sent: passed on but for what is of its connection, in Head, or for doors to say
	Body   []byte      // the beginning of the request, or all of it; nobody changes it until Sent
	End    bool        // nothing comes behind Body
	Caller *Caller     // who makes the call, if many share the Local; nil: who it was made for
	Door   string      // by which the call came in, if one connection has several; "": that of the caller
}

// Open begins a call in c, which is zero or was closed. The request's fields are
// checked like those of any caller: a call with bad ones is reset. What of Body is larger
// than the window leaves later: see Sent.
//
// Errors: ErrTooManyCalls and ErrClosed; c need not be closed then.
func (l *Local) Open(c *LocalCall, r LocalRequest) error {
	if len(r.Header) > 0 {
		r.Head = addHeader(r.Head, r.Header)
	}
	l.st.Lock()
	defer l.st.Unlock()
	return l.open(c, &r)
}

func (l *Local) open(c *LocalCall, r *LocalRequest) error {
	conn, err := l.conn()
	if err != nil {
		return err
	}
	c.begin(l)
	switch {
	case r.Caller != nil:
		id := l.st.newCallerID(*r.Caller)
		c.callerID = &id
	case r.Door != "":
		c.callerID = l.doorCaller(r)
	}
	conn.Open(&c.up, r.End && len(r.Body) == 0, r.Head)
	if len(r.Body) > 0 {
		c.rest, c.end = r.Body, r.End
		c.push()
	}
	return nil
}

// doorCaller returns whose a call is that came in by a door of the connection.
func (l *Local) doorCaller(r *LocalRequest) *callerID {
	c := l.callerID.Caller
	if l.st.conf.proxies.Has(c.Address) {
		if caller, _, ok := l.st.conf.proxies.Caller(strings.Join(r.Header["X-Forwarded-For"], ",")); ok {
			c = Caller{Address: caller} // a certificate is the proxy's
		}
	}
	c.Door = r.Door
	return l.st.callerIDOf(c)
}

// conn returns a connection with room for another call. It waits for the greeting of
// a new one if that needs to be known: before it, a peer takes 100 calls.
func (l *Local) conn() (*h2.Conn, error) {
	for {
		if l.closed || l.st.relay.closing.Load() {
			return nil, ErrClosed
		}
		if l.link == nil {
			l.connect()
		}
		switch conn := l.link.Conn; {
		case conn.CanOpen():
			return conn, nil
		case conn.Retired():
			l.retire(conn)
		case conn.Greeted():
			return nil, ErrTooManyCalls
		default:
			l.ready.Wait()
		}
	}
}

// connect joins the Local with a caller's connection of its shard.
func (l *Local) connect() {
	st := l.st
	cc := &callerConn{st: st, callerID: *l.callerID, localCaller: l, proxied: !l.authenticated && st.conf.proxies.Has(l.callerID.Address)}
	cc.timer.Owner = cc
	cc.begin()
	cc.lifetime = lifetime{idle: localIdle, quiet: st.Now()}
	st.SetTimer(&cc.timer, st.Now()+localIdle)
	l.link = st.NewLink(&st.conf.local, localSide{st}, localWatch{l})
	l.link.Conn.Owner = l
	l.relayEnd, cc.local = cc, l.link.Conn
	st.Join(l.link, cc.link)
}

// Close ends the calls that are open: their callers have left.
func (l *Local) Close() {
	l.st.Lock()
	defer l.st.Unlock()
	l.close()
}

func (l *Local) close() {
	l.closed = true
	if l.link != nil {
		l.link.Close(errLocalClosed)
	}
	l.ready.Broadcast()
}

// retire has the next call use another connection.
func (l *Local) retire(conn *h2.Conn) {
	if l.link != nil && l.link.Conn == conn {
		l.link, l.relayEnd = nil, nil
	}
	l.ready.Broadcast()
}

// localWatch is told when a connection of a Local has ended.
type localWatch struct{ *Local }

// LinkClosed implements shard.Watcher.
func (l localWatch) LinkClosed(link *shard.Link, _ error) { l.retire(link.Conn) }

// localSettled is told that the greeting is over (h2.Config).
func localSettled(conn *h2.Conn) { conn.Owner.(*Local).ready.Broadcast() }

// localSide is told what connections of Locals read (h2.Handler). It copies bytes
// and wakes who waits for them; nobody's code runs under the lock.
type localSide struct{ st *shardState }

// Accept implements h2.Handler; nobody opens streams to a caller.
func (localSide) Accept(*h2.Conn, *h2.Block) *h2.Stream { return nil }

// Headers implements h2.Handler.
func (h localSide) Headers(s *h2.Stream, b *h2.Block, end bool) {
	s.Owner.(*LocalCall).answerHeaders(b, end)
}

// TooLarge implements h2.Handler.
func (h localSide) TooLarge(s *h2.Stream, _ bool) {
	c := s.Owner.(*LocalCall)
	s.Conn().Reset(s, h2.Cancel)
	c.cut(answerOf(endedHeaders).code, answerOf(endedHeaders).message)
}

// Data implements h2.Handler.
func (h localSide) Data(s *h2.Stream, p []byte, end bool) {
	s.Owner.(*LocalCall).answerData(p, end)
}

// Reset implements h2.Handler.
func (h localSide) Reset(s *h2.Stream, code h2.ErrCode, _ bool) {
	s.Owner.(*LocalCall).answerReset(code)
}

// Lost implements h2.Handler: the Local was closed, or the relay is, or has ended a
// connection that has broken a rule.
func (h localSide) Lost(s *h2.Stream, _ bool) {
	c := s.Owner.(*LocalCall)
	switch {
	case c.local.closed:
		c.cut(grpcwire.Cancelled, "")
	case h.st.draining || h.st.relay.closing.Load():
		c.cut(grpcwire.Unavailable, answerOf(endedShutdown).message)
	default:
		c.cut(grpcwire.Unavailable, "")
	}
}

// Writable implements h2.Handler.
func (h localSide) Writable(s *h2.Stream) {
	c := s.Owner.(*LocalCall)
	c.push()
	c.wake.Broadcast()
}

// GoAway implements h2.Handler: the calls that are open come to their end.
func (h localSide) GoAway(c *h2.Conn, _ uint32, _ h2.ErrCode) { c.Owner.(*Local).retire(c) }

// Pong implements h2.Handler.
func (localSide) Pong(*h2.Conn, [8]byte) {}

var _ io.ReadWriter = (*LocalCall)(nil)
