package relay

import (
	"net"
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/list"
	"github.com/cabrank/cabrank/internal/shard"
)

// guestShare: one of so many connections may be a guest. A guest takes some 20 KiB, an idle
// HTTP/2 connection 2 KiB, and the memory bound counts 16 KiB for either.
const guestShare = 4

// Guest is a caller's connection that another server serves (Options.HTTP1), because it does
// not speak HTTP/2. While it is open it counts as a connection of its address; while it has
// no request it may be closed to make room. A drain waits for its answer, or for its end if
// it was hijacked.
//
// Life: made when the first bytes are not HTTP/2's preface, over with Close.
// Concurrency: the exported methods, and those of net.Conn, may be called from anywhere but
// under the lock of a shard. That lock guards all other methods and the fields.
type Guest struct {
	net.Conn // begins with the bytes that were already read

	st        *shardState
	callerID  callers.ID // of the connection
	doorCalls *Local     // by which its door makes calls; nil: none yet
	source    *callers.Source
	quiet     time.Duration     // when its last request ended
	idle      callers.IdlePlace // while it has no request, like node
	node      list.Node[Guest]  // in shardState.idleGuests
	timer     shard.Timer       // set when it has to leave
	hijacked  bool              // other code has taken it over
	gone      bool
}

// handOver turns the connection, which begins with first, into a guest. host serves it in a
// goroutine.
func (cc *callerConn) handOver(l *shard.Link, first []byte, host func(*Guest)) {
	nc, err := l.Detach(first)
	if err != nil {
		return // the link has ended: no descriptor was left
	}
	cc.ended()
	st := cc.st
	g := &Guest{Conn: nc, st: st, callerID: cc.callerID, source: cc.source}
	g.timer.Owner = g
	st.guests[g] = struct{}{}
	if !st.haveRoom() {
		st.disconnects[disconnect{ofCaller, reasonTooMany}]++
		g.end()
		return
	}
	g.markIdle()
	if st.draining {
		g.leave()
	}
	go host(g) // returns once it has passed the guest on; Close ends it as well
}

// haveRoom reports whether the shard has room for its guests. It makes room by closing the
// guest that has been idle for longest. Hijacked guests do not count: the code that has
// them bounds their number.
func (st *shardState) haveRoom() bool {
	if len(st.guests)-st.hijackedGuests <= max(int(st.relay.mostConnections())/guestShare/len(st.relay.shards), 1) {
		return true
	}
	if idle := st.idleGuests.First(); idle != nil {
		idle.Evict()
		return true
	}
	return false
}

// markIdle notes that the connection has no request.
func (g *Guest) markIdle() {
	g.quiet = g.st.Now()
	g.st.idleGuests.Push(&g.node, g)
	g.source.MarkIdle(&g.idle, g, g.st.number)
}

// markBusy notes that the connection has a request, or is gone.
func (g *Guest) markBusy() {
	g.node.Leave()
	g.idle.Leave()
}

// Busy notes that a request was read and is being answered. Requests that were sent one behind
// the other keep goroutines ready to run: the shard looks at its sockets beside them.
func (g *Guest) Busy() {
	g.st.do(g.markBusy)
	g.st.Nudge()
}

// Idle notes that it waits for its next request. During a drain it ends.
func (g *Guest) Idle() {
	g.st.do(func() {
		switch {
		case g.gone || g.hijacked:
		case g.st.draining:
			g.end()
		case !g.node.Listed():
			g.markIdle()
		}
	})
}

// Leaving reports whether the connection must end after its answer.
func (g *Guest) Leaving() (leaving bool) {
	g.st.do(func() { leaving = g.st.draining })
	return leaving
}

// Local returns the Local that makes calls for the connection. It is on the same shard and
// ends with the connection.
func (g *Guest) Local() *Local {
	return g.st.localOf(&g.doorCalls, &g.callerID, g.source, func() bool { return g.gone })
}

// Hijacked notes that other code has taken over the connection until it closes.
func (g *Guest) Hijacked() {
	g.st.do(func() {
		if !g.gone && !g.hijacked {
			g.hijacked = true
			g.st.hijackedGuests++
		}
	})
}

// Plain returns the connection below, for direct writes. Only Close of the guest closes
// it.
func (g *Guest) Plain() net.Conn {
	if below, ok := g.Conn.(interface{ NetConn() net.Conn }); ok {
		return below.NetConn()
	}
	return g.Conn
}

// Certificate returns the name in the caller's certificate, "" if it has shown none.
func (g *Guest) Certificate() string { return g.callerID.Certificate }

// Refused counts the connection among those that did not speak HTTP/2.
func (g *Guest) Refused() {
	g.st.do(func() { g.st.disconnects[disconnect{ofCaller, reasonNotHTTP2}]++ })
}

// Close implements net.Conn, and counts the connection out.
func (g *Guest) Close() error {
	g.st.do(g.forget)
	return g.Conn.Close()
}

// CloseWrite half-closes the connection, if it can be.
func (g *Guest) CloseWrite() error {
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// leave ends the connection after finalGoAway if it has no request then. A busy guest ends
// after its answer (Leaving).
func (g *Guest) leave() { g.st.SetTimer(&g.timer, g.st.Now()+finalGoAway) }

// Expired implements shard.Expirer: no request has come since leave.
func (g *Guest) Expired(*shard.Timer, time.Duration) {
	if g.node.Listed() {
		g.end()
	}
}

// IdleSince implements callers.Idler.
func (g *Guest) IdleSince() time.Duration { return g.quiet }

// Evict implements callers.Idler.
func (g *Guest) Evict() {
	g.st.disconnects[disconnect{ofCaller, reasonMakeRoom}]++
	g.end()
}

// end closes the connection.
func (g *Guest) end() {
	g.forget()
	go g.Conn.Close() // TLS may wait until its last record is written
}

// forget counts the connection out, once.
func (g *Guest) forget() {
	if !g.gone {
		g.unlink()
		g.st.relay.sources.Leave(g.source)
	}
}

// unlink frees everything of a guest but its place in the count of its source.
func (g *Guest) unlink() {
	g.gone = true
	g.st.StopTimer(&g.timer)
	g.markBusy()
	if g.doorCalls != nil {
		g.doorCalls.close()
	}
	delete(g.st.guests, g)
	if g.hijacked {
		g.st.hijackedGuests--
	}
}

// endGuests closes all guests, busy ones as well.
func (st *shardState) endGuests() {
	for g := range st.guests {
		g.end()
	}
}
