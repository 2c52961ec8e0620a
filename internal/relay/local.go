package relay

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/shard"
)

// localIdle is how long a Local keeps its connection without a call. The connection takes
// some 6 KiB; a new one costs some microseconds.
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
// It is for doors that do not speak HTTP/2 themselves. Such a door makes one Local for each
// of its connections, so that the bounds of a connection (Options.MaxStreams, Limits) hold
// for each caller. The door for web pages opens a call for each request; the door for
// WebSockets makes unary calls and streams from goroutines of its own. A Local without a
// call costs next to nothing: its connection is made for the first call, and ends a second
// after the last.
//
// Life: ServeLocal, any number of calls, Close. It takes no calls after Close, and none from
// the end of Relay.Drain on: until then its door may not know of the drain.
// Concurrency: every method may be called from anywhere, but not under the lock of a
// shard.
type Local struct {
	st       *shardState
	callerID *callers.ID

	// For calls that a door makes on a connection that it shares with the relay.
	authenticated bool            // the door has authenticated the caller
	source        *callers.Source // of the connection; nil: the door counts it

	// Guarded by the lock of the shard.
	link     *shard.Link // for the next call; nil: not connected
	relayEnd *callerConn // the relay's end of link
	ready    sync.Cond   // the connection has greeted, or ended
	closed   bool
}

// ServeLocal takes a caller in this process. The door bounds their number: each belongs to a
// connection of the door, and those count in Limits.Connections.
func (r *Relay) ServeLocal(c callers.Caller) *Local {
	st := r.next()
	l := &Local{st: st, authenticated: true}
	l.ready.L = st
	st.do(func() {
		id := st.ids.New(c)
		l.callerID = &id
	})
	return l
}

// localOf returns the Local by which doors make the calls of a connection, whose place for it
// is held. gone is asked whether the connection has ended.
func (st *shardState) localOf(held **Local, id *callers.ID, from *callers.Source, gone func() bool) *Local {
	st.Lock()
	defer st.Unlock()
	if *held == nil {
		*held = &Local{st: st, callerID: id, source: from, closed: gone()}
		(*held).ready.L = st
	}
	return *held
}

// Fields is an encoded header list.
type Fields = h2.Fields

// LocalRequest is the beginning of a call.
type LocalRequest struct {
	Head   Fields          // :method, :scheme, :path, :authority and the other fields that the door sets
	Header http.Header     // fields of the door's caller: passed on without those of its connection, those in Head, and those that only doors set
	Body   []byte          // the beginning of the request, or all of it; must not change until Sent
	End    bool            // Body is the end of the request
	Caller *callers.Caller // the call's caller, if several share the Local; nil: that of the Local
	Door   string          // the call's door, if one connection has several; "": that of the caller
}

// Open begins a call in c, which is zero or was closed. The request's fields are checked like
// those of any caller: a call with bad fields is reset. The part of Body above the window is
// sent later: see Sent.
//
// Errors: ErrTooManyCalls and ErrClosed; c need not be closed then.
func (l *Local) Open(c *LocalCall, r LocalRequest) error {
	if len(r.Header) > 0 {
		r.Head = callers.AddHeader(r.Head, r.Header)
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
		id := l.st.ids.New(*r.Caller)
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

// doorCaller returns the caller of a call that came in by a door of the connection.
func (l *Local) doorCaller(r *LocalRequest) *callers.ID {
	c := l.callerID.Caller
	if l.st.conf.proxies.Has(c.Address) {
		if caller, _, ok := l.st.conf.proxies.Caller(strings.Join(r.Header["X-Forwarded-For"], ",")); ok {
			c = callers.Caller{Address: caller} // a certificate is the proxy's
		}
	}
	c.Door = r.Door
	return l.st.ids.Of(c)
}

// conn returns a connection with room for another call. If a new connection has its first
// 100 calls already, it waits for the greeting, which has the real limit.
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

// retire makes the next call use another connection.
func (l *Local) retire(conn *h2.Conn) {
	if l.link != nil && l.link.Conn == conn {
		l.link, l.relayEnd = nil, nil
	}
	l.ready.Broadcast()
}

// localWatch notes the end of a Local's connection.
type localWatch struct{ *Local }

// LinkClosed implements shard.Watcher.
func (l localWatch) LinkClosed(link *shard.Link, _ error) { l.retire(link.Conn) }

// localSettled is called when the greeting is over (h2.Config).
func localSettled(conn *h2.Conn) { conn.Owner.(*Local).ready.Broadcast() }

// localSide gets the frames of Locals' connections (h2.Handler). It copies bytes and wakes
// the goroutines that wait for them; no code of a door runs under the lock.
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

// Lost implements h2.Handler: the Local or the relay was closed, or the connection broke a
// rule.
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

// GoAway implements h2.Handler: open calls go on to their end.
func (h localSide) GoAway(c *h2.Conn, _ uint32, _ h2.ErrCode) { c.Owner.(*Local).retire(c) }

// Pong implements h2.Handler.
func (localSide) Pong(*h2.Conn, [8]byte) {}

var _ io.ReadWriter = (*LocalCall)(nil)
