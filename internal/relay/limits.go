package relay

import (
	"time"
)

// Limits bound callers' connections. The code that fills them in has validated them.
type Limits struct {
	Connections int           // at a time, all shards together, at least 1
	Descriptors int           // callers get no descriptor from this number on, 0: no limit
	Handshake   time.Duration // until the HTTP/2 preface and SETTINGS have arrived, R22
	Header      time.Duration // for the rest of a header block or other frame but DATA, 0: no limit
	Window      int32         // bytes of one call that may wait for its slot; half of them under pressure, R11
	MaxWindow   int32         // bytes of a running call that may wait to be read, each way, R11
	Buffer      int           // bytes of all calls of one connection that may wait, R11
	Frame       uint32        // longest frame, bytes, at least 16 KiB (RFC 9113 4.2)
	Idle        time.Duration // time without a call after which a connection is ended, 0: never, R15
	Age         time.Duration // age at which a connection is ended, 0: never, R15
}

// lifetimeSpread is the part by which idle and age limits of a connection vary, so that
// connections made together do not come back together (R15).
const lifetimeSpread = 0.1

// lifetime decides when a caller's connection ends.
type lifetime struct {
	idle  time.Duration // how long it may be without a call, 0: for ever
	end   time.Duration // when it is too old, 0: never
	quiet time.Duration // when its last call ended, or it began
}

func (st *shardState) newLifetime(now time.Duration) lifetime {
	o := st.relay.settings()
	l := lifetime{quiet: now}
	if o.Limits.Idle > 0 {
		l.idle = spread(o.Limits.Idle, lifetimeSpread, o.Random())
	}
	if o.Limits.Age > 0 {
		l.end = now + spread(o.Limits.Age, lifetimeSpread, o.Random())
	}
	return l
}

// ended returns the reason for which the connection ends now, or else when to look again, 0
// for never. It is not called at each call: it costs one timer for each connection, which
// fires at most once in an idle time.
func (l *lifetime) ended(calls int, now time.Duration) (reason string, next time.Duration) {
	if l.idle > 0 {
		if calls > 0 {
			l.quiet = max(l.quiet, now)
		}
		next = l.quiet + l.idle
		if now >= next {
			return reasonIdle, 0
		}
	}
	if l.end > 0 {
		if now >= l.end {
			return reasonAge, 0
		}
		if next == 0 || l.end < next {
			next = l.end
		}
	}
	return "", next
}

// checkLifetime ends the connection if its time is over, in two steps, so that its calls can
// finish (R15, R17).
func (cc *callerConn) checkLifetime(now time.Duration) {
	reason, next := cc.lifetime.ended(cc.link.Conn.Streams(), now)
	switch {
	case reason != "":
		if cc.local == nil { // a connection in this process is no caller's to count
			cc.st.disconnects[disconnect{ofCaller, reason}]++
		}
		cc.leave()
	case next != 0:
		cc.st.SetTimer(&cc.timer, next)
	}
}

const (
	// connectionSize is the most memory of an idle caller's connection, bytes: engine,
	// header table and the kernel's part.
	connectionSize = 16 << 10
	// The bounds never go below these, however little memory the container has.
	leastBuffers     = 1 << 20
	leastConnections = 16
)

// SetMemory sets how many bytes callers may take. One half bounds the buffers, if it is less
// than Options.BufferTotal; the other half bounds the connections, if that makes fewer than
// Limits.Connections. 0 leaves the options alone. Use above a new bound is given up as new
// work comes.
//
// Concurrency: may be called from anywhere.
func (r *Relay) SetMemory(bytes int64) {
	r.memory.Store(bytes)
	r.budget.SetTotal(r.bufferTotal())
}

// bufferTotal returns how many bytes may be buffered.
func (r *Relay) bufferTotal() int64 {
	total := r.settings().BufferTotal
	if bytes := r.memory.Load(); bytes > 0 {
		total = min(total, max(bytes/2, leastBuffers))
	}
	return total
}

// mostConnections returns how many connections callers may have.
func (r *Relay) mostConnections() int64 {
	most := int64(r.settings().Limits.Connections)
	if bytes := r.memory.Load(); bytes > 0 {
		most = min(most, max(bytes/2/connectionSize, leastConnections))
	}
	return most
}
