package relay

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/head"
	"github.com/cabrank/cabrank/internal/list"
	"github.com/cabrank/cabrank/internal/shard"
)

// finalGoAway is how long the first GOAWAY may go unanswered (R17).
const finalGoAway = time.Second

// callerConn is one connection of a caller.
type callerConn struct {
	st           *shardState
	link         *shard.Link
	callerID     callers.ID // of its calls, unless a call has one of its own
	local        *h2.Conn   // the other end in this process, nil: a socket
	localCaller  *Local     // the Local that has that end
	doorCalls    *Local     // by which its doors make calls; nil: none yet
	lifetime     lifetime
	overNetwork  bool                  // the peer is on another machine
	secure       bool                  // over TLS
	proxied      bool                  // its peer is one of Options.Proxies
	asked        time.Duration         // when the unanswered PING was sent, 0: none; see absentWatch
	acked        uint64                // bytes that its machine had acknowledged by then
	held         int                   // bytes that wait here for its calls, see call.count
	excess       int                   // bytes that its engine holds above the allowance of each connection
	source       *callers.Source       // its address
	waiting      list.List[call]       // its calls that can be shed
	class        uint8                 // by heldBytes, see sheddable; 0: nothing can be shed
	byHeld       list.Node[callerConn] // in sheddable.classes
	idle         callers.IdlePlace     // used while it has no call
	answeredHere int                   // its health calls, which Cabrank answers

	ahead     int                // credit given ahead for its answers, see call.absorb
	timer     shard.Timer        // end of the handshake; next look at its lifetime; end of the wait after GOAWAY
	head      *head.Head         // of its last call, if the next may have the same
	key       *callers.Key       // of its last call; nil: none yet, or callers are not told apart
	pass      *callers.KnownPass // of the call that begins; nil: no checked token, or none is needed
	leaving   bool               // it has to end
	leaveSaid bool               // the first GOAWAY is out
	finalled  bool               // the final GOAWAY is out
}

// callerSide gets the frames of callers' connections (h2.Handler).
type callerSide struct{ st *shardState }

// admit takes a caller's connection into the shard. name is that of its certificate, "": none.
// Called under the lock.
func (st *shardState) admit(nc net.Conn, from *callers.Source, name string) {
	if st.relay.closing.Load() { // otherwise nobody would close it
		st.relay.sources.Leave(from)
		_ = nc.Close()
		return
	}
	cc := &callerConn{st: st, source: from}
	cc.timer.Owner = cc
	cc.callerID = st.ids.New(callers.Caller{Address: callerAddress(nc), Certificate: name, Door: socketDoor})
	cc.proxied = st.conf.proxies.Has(cc.callerID.Address)
	cc.overNetwork = door.Away(nc)
	_, cc.secure = nc.(*tls.Conn)
	door.EndUnheard(nc)
	cc.begin()
	now := st.Now()
	cc.lifetime = st.newLifetime(now)
	cc.markIdle()
	st.SetTimer(&cc.timer, now+st.relay.settings().Limits.Handshake)
	cc.link.Attach(nc)
	if st.draining {
		cc.leave()
	}
}

// begin makes the connection's link and adds it to the shard's callers.
func (cc *callerConn) begin() {
	st := cc.st
	cc.link = st.NewLink(&st.conf.down, callerSide{st}, cc)
	cc.link.Conn.Owner = cc
	st.callers[cc] = struct{}{}
}

func callerAddress(nc net.Conn) string {
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		return a.IP.String()
	}
	return ""
}

// LinkClosed implements shard.Watcher.
func (cc *callerConn) LinkClosed(*shard.Link, error) {
	cc.ended()
	if cc.local == nil {
		cc.st.relay.sources.Leave(cc.source)
	}
}

// ended frees everything of a connection but its place in the count of its source.
func (cc *callerConn) ended() {
	cc.st.StopTimer(&cc.timer)
	cc.dropHead()
	cc.excess = 0
	if cc.doorCalls != nil {
		cc.doorCalls.close()
	}
	cc.updateClass()
	cc.leaveKey()
	delete(cc.st.callers, cc)
	cc.idle.Leave()
}

// NotHTTP2 hands connections that begin with HTTP/1 or TLS to their servers. All others
// end (RFC 9113 3.4).
func (cc *callerConn) NotHTTP2(l *shard.Link, first []byte) {
	kind, set := door.KindOf(first), cc.st.relay.settings()
	switch {
	case kind == door.TLS && set.TLS != nil && !cc.secure:
		cc.handOver(l, first, startTLS)
	case kind == door.HTTP1 && cc.mustSecure():
		l.Conn.Raw([]byte(clearAnswer))
		cc.st.noteEnded(disconnect{ofCaller, reasonNoTLS}, "a caller began without TLS, which this port asks for")
	case kind == door.HTTP1 && set.HTTP1 != nil:
		cc.handOver(l, first, set.HTTP1)
	case kind == door.TLS && !cc.secure:
		cc.st.noteEnded(disconnect{ofCaller, reasonNotHTTP2}, "a caller began with TLS; this port speaks HTTP/2 without it")
	default:
		cc.st.disconnects[disconnect{ofCaller, reasonNotHTTP2}]++
	}
}

// Broken is called when the caller broke a rule of the whole connection, or made more
// work than it may (h2.Chore). Its calls end now: nobody will read their answers.
func (cc *callerConn) Broken(_ *shard.Link, why *h2.ConnError) {
	cc.st.noteBreach(ofCaller, cc.callerID.String(), why)
	for _, o := range cc.owners() {
		o.abandoned(cc.st.Now())
	}
}

// Expired implements shard.Expirer: the preface or the answer to the first GOAWAY is
// missing, or it is time to check the connection's lifetime.
func (cc *callerConn) Expired(_ *shard.Timer, now time.Duration) {
	switch {
	case !cc.link.Conn.Greeted():
		cc.st.disconnects[disconnect{ofCaller, reasonNoPreface}]++
		cc.link.Close(shard.ErrHandshake)
	case cc.leaving:
		cc.finalGoAway()
	default:
		cc.checkLifetime(now)
	}
}

// leave begins the two-step GOAWAY (RFC 9113 6.8, R17): the caller learns that
// it must go elsewhere before its next streams are refused.
func (cc *callerConn) leave() {
	if cc.leaving {
		return
	}
	cc.leaving = true
	cc.st.SetTimer(&cc.timer, cc.st.Now()+finalGoAway)
	if cc.link.Conn.Greeted() {
		cc.sayLeave()
	}
}

func (cc *callerConn) sayLeave() {
	cc.leaveSaid = true
	cc.link.Conn.GoAway(h2.MaxStreamID, h2.NoError, "")
	cc.link.Conn.Ping([8]byte{'l', 'e', 'a', 'v', 'e'})
}

// callerSettled is called with the first SETTINGS of a caller (h2.Config). A caller that
// came in when the door closed gets its GOAWAY here.
func callerSettled(conn *h2.Conn) {
	cc := conn.Owner.(*callerConn)
	if cc.mustSecure() {
		cc.st.noteEnded(disconnect{ofCaller, reasonNoTLS}, "a caller began without TLS, which this port asks for")
		conn.GoAway(0, h2.InadequateSecurity, "this port speaks TLS")
		cc.link.Finish(errClear)
		return
	}
	if cc.leaving && !cc.leaveSaid {
		cc.sayLeave()
		cc.st.SetTimer(&cc.timer, cc.st.Now()+finalGoAway)
	}
}

func (cc *callerConn) finalGoAway() {
	if cc.finalled {
		return
	}
	cc.finalled = true
	cc.st.StopTimer(&cc.timer)
	cc.link.Conn.GoAway(cc.link.Conn.LastPeerStream(), h2.NoError, "")
	for c := range cc.st.watches {
		if c.caller == cc {
			c.fail(endedShutdown, cc.st.Now())
		}
	}
	cc.callEnded()
}

// callEnded ends a connection that has sent its final GOAWAY and has no call left.
func (cc *callerConn) callEnded() {
	cc.lifetime.quiet = cc.st.Now()
	cc.markIdle()
	if cc.finalled && !cc.link.Closed() && cc.link.Conn.Streams() == 0 {
		cc.link.Finish(errDrained)
	}
}

// Accept implements h2.Handler.
func (h callerSide) Accept(c *h2.Conn, b *h2.Block) *h2.Stream {
	cc := c.Owner.(*callerConn)
	id := cc.identify(c.LastPeerStream(), b)
	if id == nil {
		return nil
	}
	cc.idle.Leave()
	if most := h.st.relay.settings().MaxStreams; cc.local == nil && c.Streams()+1 == int(most) && h.st.Now() >= h.st.crowdedNext {
		h.st.logCrowded(cc.callerID.String(), most)
	}
	if serve := cc.otherwise(b); serve != nil {
		return &h.st.newExchange(cc, id, serve).stream
	}
	return &h.st.newCall(cc, id).down
}

// Headers implements h2.Handler: a request, or its trailers.
func (h callerSide) Headers(s *h2.Stream, b *h2.Block, end bool) {
	ownerOf(s).requestHeaders(b, end, h.st.Now())
}

// TooLarge implements h2.Handler.
func (h callerSide) TooLarge(s *h2.Stream, end bool) {
	ownerOf(s).requestTooLarge(end, h.st.Now())
}

// Data implements h2.Handler.
func (h callerSide) Data(s *h2.Stream, p []byte, end bool) {
	ownerOf(s).requestData(p, end, h.st.Now())
}

// Reset implements h2.Handler: the caller has left, and the worker's stream is cancelled
// at once.
func (h callerSide) Reset(s *h2.Stream, _ h2.ErrCode, _ bool) {
	ownerOf(s).abandoned(h.st.Now())
}

// Lost implements h2.Handler: the caller's connection is gone.
func (h callerSide) Lost(s *h2.Stream, _ bool) {
	ownerOf(s).abandoned(h.st.Now())
}

// Writable implements h2.Handler.
func (h callerSide) Writable(s *h2.Stream) {
	ownerOf(s).pumpAnswer(h.st.Now())
}

// GoAway implements h2.Handler: a caller's GOAWAY concerns pushed streams, and Cabrank
// pushes none.
func (callerSide) GoAway(*h2.Conn, uint32, h2.ErrCode) {}

// Pong implements h2.Handler: the caller has seen the first GOAWAY, or answers a keepalive.
func (callerSide) Pong(c *h2.Conn, data [8]byte) {
	if cc := c.Owner.(*callerConn); cc.leaving && data != keepAlivePing() {
		cc.finalGoAway()
	}
}

// IdleSince implements callers.Idler.
func (cc *callerConn) IdleSince() time.Duration { return cc.lifetime.quiet }

// Evict implements callers.Idler. GOAWAY tells the caller that no call was under way.
func (cc *callerConn) Evict() {
	cc.st.disconnects[disconnect{ofCaller, reasonMakeRoom}]++
	if conn := cc.link.Conn; conn.Greeted() {
		conn.GoAway(conn.LastPeerStream(), h2.NoError, "")
	}
	cc.link.CloseFlushed(errEvicted)
}

// markIdle notes that the connection is idle, if all its calls are ones that Cabrank
// answers.
func (cc *callerConn) markIdle() {
	if cc.link.Conn.Streams() == cc.answeredHere && !cc.link.Closed() {
		cc.source.MarkIdle(&cc.idle, cc, cc.st.number)
	}
}

// owner has a stream of a caller's connection: a call or an Exchange. Which of them, the
// request's HEADERS decide (callerSide.Accept). It is h2.Stream.Owner from then on.
//
// Concurrency: all methods run under the lock of the shard.
type owner interface {
	requester
	leaver
	// pumpAnswer is told that at least one byte can be written.
	pumpAnswer(now time.Duration)
}

// requester takes the frames that its caller sends.
type requester interface {
	// requestHeaders takes the head of the request, or its trailers.
	requestHeaders(b *h2.Block, end bool, now time.Duration)
	// requestTooLarge takes the place of requestHeaders where the list is above the
	// limit that was announced.
	requestTooLarge(end bool, now time.Duration)
	requestData(p []byte, end bool, now time.Duration)
}

// leaver can be ended early.
type leaver interface {
	// abandoned is told that the caller has gone: its stream, its connection, or it
	// has broken a rule. It closes the stream, if that is open still.
	abandoned(now time.Duration)
	// drained is told that the time of a drain is over. It may still answer within
	// messageTime.
	drained(now time.Duration)
	// cutOff ends it at once. It may write what fits without the caller's reading.
	cutOff(now time.Duration)
}

// ownerOf returns the owner of a stream.
func ownerOf(s *h2.Stream) owner {
	if c, is := s.Owner.(*call); is { // mostly; and cheaper to ask for than the interface
		return c
	}
	return s.Owner.(owner)
}

// owners returns the owners of the open streams of the connection.
func (cc *callerConn) owners() (open []owner) {
	cc.link.Conn.Each(func(s *h2.Stream) { open = append(open, ownerOf(s)) })
	return open
}

// otherwise returns the code of this process that serves a request; nil: it is a call.
// Requests from this process are calls: code that serves exchanges may make them.
func (cc *callerConn) otherwise(b *h2.Block) (serve func(*Exchange)) {
	other := cc.st.relay.settings().Other
	if other == nil || cc.local != nil || cc.sameHead(b) != nil { // a call, like the last one
		return nil
	}
	contentType, _ := b.Watched(head.FieldContentType)
	method, _ := b.Watched(head.FieldMethod)
	if grpcwire.IsGRPC(contentType.Value) && string(method.Value) == http.MethodPost {
		return nil
	}
	path, found := b.Watched(head.FieldPath)
	if !found { // CONNECT, or a header list that was cut off
		return nil
	}
	return other(Head{method.Value, path.Value, contentType.Value})
}
