package relay

import (
	"net"
	"time"

	"github.com/cabrank/cabrank/internal/shard"
)

// guestPart is which part of all connections may be guests. One costs some 20 KiB, where
// an idle one of HTTP/2 costs two, and its place is counted as 16 at most.
const guestPart = 4

// Guest is a caller's connection that does not speak HTTP/2 and has another server
// (Options.HTTP1). As long as it is open it counts as one of its address, and while
// it has no request it makes room for others. A drain waits for its answer, and if it
// was taken over (hijacked), for its end.
//
// Life: made where the first bytes are no preface, over with Close.
// Concurrency: the exported methods may be called from anywhere but under the lock of
// a shard, as those of net.Conn. All others, and the fields, are guarded by that lock.
type Guest struct {
	net.Conn // begins with the bytes that were read

	st      *stand
	own     who    // as it came
	calls   *Local // by which its door makes calls; nil: it has made none
	source  *source
	quiet   time.Duration // since when it has had no request
	resting seat          // while it has none, as the next
	oldest  place[Guest]  // in stand.restingGuests
	timer   shard.Timer   // since it was told to go
	taken   bool          // by who has it from now on
	gone    bool
}

// handOver makes a guest of the connection, which begins with first, and has host serve it
// in a goroutine: until it is closed.
func (cc *callerConn) handOver(l *shard.Link, first []byte, host func(*Guest)) {
	nc, err := l.Detach(first)
	if err != nil {
		return // the link has ended: there was no descriptor left
	}
	cc.ended()
	st := cc.st
	g := &Guest{Conn: nc, st: st, own: cc.own, source: cc.source}
	g.timer.Owner = g
	st.guests[g] = struct{}{}
	if !st.haveRoom() {
		st.partings[parting{ofCaller, partingFull}]++
		g.end()
		return
	}
	g.rests()
	if st.draining {
		g.leave()
	}
	go host(g) // ends when it is accepted; Close ends it otherwise
}

// haveRoom reports whether the shard has no more guests than it may, but for those that
// were taken over, whose number is for who has them to bound. The one that has
// been without a request for longest goes for a new one.
func (st *stand) haveRoom() bool {
	if len(st.guests)-st.takenGuests <= max(int(st.relay.mostConnections())/guestPart/len(st.relay.stands), 1) {
		return true
	}
	if idle := st.restingGuests.first(); idle != nil {
		idle.dismiss()
		return true
	}
	return false
}

// rests notes that the connection has no request.
func (g *Guest) rests() {
	g.quiet = g.st.Now()
	g.st.restingGuests.push(&g.oldest, g)
	g.source.rests(&g.resting, g, g.st.number)
}

// stirs notes that the connection has a request, or is gone.
func (g *Guest) stirs() {
	g.oldest.leave()
	g.resting.leave()
}

// Busy notes that a request was read and is being answered. Requests that were sent one behind
// the other keep goroutines ready to run: the shard looks at its sockets beside them.
func (g *Guest) Busy() {
	g.st.do(g.stirs)
	g.st.Nudge()
}

// Idle notes that it was answered and waits for the next. One that is to leave goes.
func (g *Guest) Idle() {
	g.st.do(func() {
		switch {
		case g.gone || g.taken:
		case g.st.draining:
			g.end()
		case !g.oldest.listed():
			g.rests()
		}
	})
}

// Leaving reports whether the connection has to end with its answer.
func (g *Guest) Leaving() (leaving bool) {
	g.st.do(func() { leaving = g.st.draining })
	return leaving
}

// Local returns the caller by which calls are made for the connection: on the same shard,
// and ended with it.
func (g *Guest) Local() *Local {
	g.st.Lock()
	defer g.st.Unlock()
	if g.calls == nil {
		g.calls = g.st.localOf(&g.own, g.source)
		g.calls.closed = g.gone
	}
	return g.calls
}

// Hijacked notes that the connection is somebody's who has it until it closes.
func (g *Guest) Hijacked() {
	g.st.do(func() {
		if !g.gone && !g.taken {
			g.taken = true
			g.st.takenGuests++
		}
	})
}

// Plain returns the connection below, to write to without a detour. It is closed by
// Close of the guest alone.
func (g *Guest) Plain() net.Conn {
	if below, ok := g.Conn.(interface{ NetConn() net.Conn }); ok {
		return below.NetConn()
	}
	return g.Conn
}

// Certificate is the name by which its caller has shown who it is, "" if it has not.
func (g *Guest) Certificate() string { return g.own.Certificate }

// Refused counts the connection as one that did not speak HTTP/2 where it should.
func (g *Guest) Refused() {
	g.st.do(func() { g.st.partings[parting{ofCaller, partingForeign}]++ })
}

// Close implements net.Conn, and counts the connection out.
func (g *Guest) Close() error {
	g.st.do(g.forget)
	return g.Conn.Close()
}

// CloseWrite half-closes the connection, where that is possible.
func (g *Guest) CloseWrite() error {
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// leave has the connection end with its answer, or when the request that may be on
// its way does not come.
func (g *Guest) leave() { g.st.SetTimer(&g.timer, g.st.Now()+finalGoAway) }

// Expired implements shard.Expirer: it has been told to go for long enough.
func (g *Guest) Expired(*shard.Timer, time.Duration) {
	if g.oldest.listed() {
		g.end()
	}
}

// restsSince implements occupant.
func (g *Guest) restsSince() time.Duration { return g.quiet }

// dismiss implements occupant.
func (g *Guest) dismiss() {
	g.st.partings[parting{ofCaller, partingRoom}]++
	g.end()
}

// end closes the connection.
func (g *Guest) end() {
	g.forget()
	go g.Conn.Close() // TLS may wait for its last record
}

// forget counts the connection out, once.
func (g *Guest) forget() {
	if !g.gone {
		g.part()
		g.st.relay.leaves(g.source)
	}
}

// part leaves nothing of a guest but its place among the connections of its source.
func (g *Guest) part() {
	g.gone = true
	g.st.StopTimer(&g.timer)
	g.stirs()
	if g.calls != nil {
		g.calls.close()
	}
	delete(g.st.guests, g)
	if g.taken {
		g.st.takenGuests--
	}
}

// endGuests closes all of them, with what they are answering.
func (st *stand) endGuests() {
	for g := range st.guests {
		g.end()
	}
}
