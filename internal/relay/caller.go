package relay

import (
	"crypto/tls"
	"net"
	"time"

	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/shard"
)

// finalGoAway is how long the first GOAWAY may go unanswered (R17).
const finalGoAway = time.Second

// callerConn is one connection of a caller.
type callerConn struct {
	st      *stand
	link    *shard.Link
	own     who      // whose calls these are, but for those that say otherwise
	local   *h2.Conn // the other end in this process, nil: a socket
	of      *Local   // who has that end
	calls   *Local   // by which its doors make calls; nil: they have made none
	life    life
	away    bool              // behind a network that may be lost
	secure  bool              // over TLS
	proxied bool              // its peer is one of Options.Proxies
	asked   time.Duration     // when it was sent the PING that it has not answered, 0: it has; see absentWatch
	acked   uint64            // bytes that its machine had acknowledged then
	held    int               // bytes that wait for it here, see call.count
	excess  int               // bytes that its engine holds beyond what every one may
	source  *source           // where it comes from
	waiting list[call]        // its calls that can be given up
	class   uint8             // by what it holds, see hoard; 0: nothing can be given up
	byPart  place[callerConn] // in hoard.classes
	resting seat              // while it has no call
	atDoor  int               // calls that are answered here: of the health

	ahead     int         // of its answers, see call.absorb
	timer     shard.Timer // end of the handshake; a look at its life; end of the wait after GOAWAY
	recent    *method     // of its last call: most callers use few
	form      *form       // of its last call, if the next may have the same
	key       *key        // of its last call; nil: none yet, or no matter
	pass      *proof      // of the call that begins; nil: it has shown none yet, or need not
	leaving   bool        // it has to go
	leaveSaid bool        // the first GOAWAY is out
	finalled  bool        // the final GOAWAY is out
}

// callerSide is told what callers' connections read (h2.Handler).
type callerSide struct{ st *stand }

// accept takes a caller's connection into the stand's shard.
func (st *stand) accept(nc net.Conn, from *source) {
	st.do(func() { st.admit(nc, from, "") })
}

// admit takes it under the lock; its caller has shown a certificate of a name, "": none.
func (st *stand) admit(nc net.Conn, from *source, name string) {
	if st.relay.closing.Load() { // nobody would ever close it
		st.relay.leaves(from)
		_ = nc.Close()
		return
	}
	cc := &callerConn{st: st, source: from}
	cc.timer.Owner = cc
	cc.own = st.whoIs(Caller{Address: callerAddress(nc), Certificate: name, Door: socketDoor})
	cc.proxied = st.conf.proxies.Has(cc.own.Address)
	cc.away = door.Away(nc)
	_, cc.secure = nc.(*tls.Conn)
	door.EndUnheard(nc)
	cc.begin()
	now := st.Now()
	cc.life = st.newLife(now)
	cc.rests()
	st.SetTimer(&cc.timer, now+st.relay.settings().Limits.Handshake)
	cc.link.Attach(nc)
	if st.draining {
		cc.leave()
	}
}

// begin makes the connection's link and counts it among the stand's callers.
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
		cc.st.relay.leaves(cc.source)
	}
}

// ended leaves nothing of a connection but its place among those of its source.
func (cc *callerConn) ended() {
	cc.st.StopTimer(&cc.timer)
	if cc.form != nil {
		cc.st.drop(cc.form)
		cc.form = nil
	}
	cc.excess = 0
	if cc.calls != nil {
		cc.calls.close()
	}
	cc.sort()
	cc.leaveKey()
	delete(cc.st.callers, cc)
	cc.stirs()
}

// NotHTTP2 has those who speak HTTP/1 or TLS served by whoever does that. Whoever speaks
// neither sees the end of the connection, as RFC 9113 3.4 has it.
func (cc *callerConn) NotHTTP2(l *shard.Link, first []byte) {
	kind, set := door.KindOf(first), cc.st.relay.settings()
	switch {
	case kind == door.TLS && set.TLS != nil && !cc.secure:
		cc.handOver(l, first, startTLS)
	case kind == door.HTTP1 && cc.mustSecure():
		l.Conn.Raw([]byte(clearAnswer))
		cc.st.refused(partingClear, "a caller began without TLS, which this port asks for")
	case kind == door.HTTP1 && set.HTTP1 != nil:
		cc.handOver(l, first, set.HTTP1)
	case kind == door.TLS && !cc.secure:
		cc.st.refused(partingForeign, "a caller began with TLS; this port speaks HTTP/2 without it")
	default:
		cc.st.partings[parting{ofCaller, partingForeign}]++
	}
}

// Broken is told that the caller broke a rule of the whole connection, or had
// us do more chores than it may (h2.Chore). Its calls end now: nobody will take
// their answers.
func (cc *callerConn) Broken(_ *shard.Link, why *h2.ConnError) {
	cc.st.parted(ofCaller, cc.own.String(), why)
	for _, o := range cc.owners() {
		o.abandoned(cc.st.Now())
	}
}

// Expired implements shard.Expirer: no preface has come, or no answer to the
// first GOAWAY, or it is time to look how long the connection has been there.
func (cc *callerConn) Expired(_ *shard.Timer, now time.Duration) {
	switch {
	case !cc.link.Conn.Greeted():
		cc.st.partings[parting{ofCaller, partingSilent}]++
		cc.link.Close(shard.ErrHandshake)
	case cc.leaving:
		cc.finalGoAway()
	default:
		cc.look(now)
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

// callerSettled is told the settings of a caller (h2.Config). One that was let in
// last, when the door closed, is told at its greeting that it has to go.
func callerSettled(conn *h2.Conn) {
	cc := conn.Owner.(*callerConn)
	if cc.mustSecure() {
		cc.st.refused(partingClear, "a caller began without TLS, which this port asks for")
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

// callEnded ends a connection that has said goodbye and has no call left.
func (cc *callerConn) callEnded() {
	cc.life.quiet = cc.st.Now()
	cc.rests()
	if cc.finalled && !cc.link.Closed() && cc.link.Conn.Streams() == 0 {
		cc.link.Finish(errDrained)
	}
}

// Accept implements h2.Handler.
func (h callerSide) Accept(c *h2.Conn, b *h2.Block) *h2.Stream {
	cc := c.Owner.(*callerConn)
	w := cc.whose(c.LastPeerStream(), b)
	if w == nil {
		return nil
	}
	cc.stirs()
	if most := h.st.relay.settings().MaxStreams; cc.local == nil && c.Streams()+1 == int(most) && h.st.Now() >= h.st.crowdedNext {
		h.st.sayCrowded(cc.own.String(), most)
	}
	if serve := cc.otherwise(b); serve != nil {
		return &h.st.newExchange(cc, w, serve).stream
	}
	return &h.st.newCall(cc, w).down
}

// Headers implements h2.Handler: a request, or its trailers.
func (h callerSide) Headers(s *h2.Stream, b *h2.Block, end bool) {
	ownerOf(s).requestHead(b, end, h.st.Now())
}

// TooLarge implements h2.Handler.
func (h callerSide) TooLarge(s *h2.Stream, end bool) {
	ownerOf(s).requestTooLarge(end, h.st.Now())
}

// Data implements h2.Handler.
func (h callerSide) Data(s *h2.Stream, p []byte, end bool) {
	ownerOf(s).requestData(p, end, h.st.Now())
}

// Reset implements h2.Handler: the caller has left; the worker's stream is
// cancelled at once.
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

// GoAway implements h2.Handler: a caller's GOAWAY concerns pushed streams,
// which there are none of.
func (callerSide) GoAway(*h2.Conn, uint32, h2.ErrCode) {}

// Pong implements h2.Handler: the caller has seen the first GOAWAY, or is there at all.
func (callerSide) Pong(c *h2.Conn, data [8]byte) {
	if cc := c.Owner.(*callerConn); cc.leaving && data != whetherThere() {
		cc.finalGoAway()
	}
}
