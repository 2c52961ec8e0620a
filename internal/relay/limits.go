package relay

import "time"

// Limits bound what callers' connections may take. The caller has validated
// them.
type Limits struct {
	Connections int           // at a time, all shards together, at least 1
	Descriptors int           // callers get none from this one on, the rest is for what serves them, 0: any
	Handshake   time.Duration // until the HTTP/2 preface and SETTINGS have arrived, R22
	Header      time.Duration // for a header block, or another frame but DATA, that has begun, 0: for ever
	Window      int32         // what one call may have sent that waits for its slot, bytes; half of it under pressure, R11
	MaxWindow   int32         // what a running call may have sent that waits to be taken, each way, bytes, R11
	Buffer      int           // bytes of all calls of one connection that may wait, R11
	Frame       uint32        // longest frame, bytes, at least 16 KiB (RFC 9113 4.2)
	Idle        time.Duration // without a call until a connection is ended, 0: never, R15
	Age         time.Duration // from the start until a connection is ended, 0: never, R15
}

// lifeSpread is by which part the idle and age limits of a connection are
// shorter or longer, so that connections which were made together do not all
// come back together (R15).
const lifeSpread = 0.1

// life is when a caller's connection has to end.
type life struct {
	idle  time.Duration // how long it may be without a call, 0: for ever
	end   time.Duration // when it is too old, 0: never
	quiet time.Duration // when its last call ended, or it began
}

func (st *stand) newLife(now time.Duration) life {
	o := st.relay.settings()
	l := life{quiet: now}
	if o.Limits.Idle > 0 {
		l.idle = spread(o.Limits.Idle, lifeSpread, o.Random())
	}
	if o.Limits.Age > 0 {
		l.end = now + spread(o.Limits.Age, lifeSpread, o.Random())
	}
	return l
}

// over tells the reason for which the connection has to end now, or when it
// must be looked at again, 0 if never. It is not asked at every call: one timer
// per connection, which rings at most once in an idle time, is all it costs.
func (l *life) over(calls int, now time.Duration) (reason string, next time.Duration) {
	if l.idle > 0 {
		if calls > 0 {
			l.quiet = max(l.quiet, now)
		}
		next = l.quiet + l.idle
		if now >= next {
			return partingIdle, 0
		}
	}
	if l.end > 0 {
		if now >= l.end {
			return partingAge, 0
		}
		if next == 0 || l.end < next {
			next = l.end
		}
	}
	return "", next
}

// look ends the connection if its time has come, in two steps and with all the
// time that its calls need (R15, R17).
func (cc *callerConn) look(now time.Duration) {
	reason, next := cc.life.over(cc.link.Conn.Streams(), now)
	switch {
	case reason != "":
		if cc.local == nil { // else nobody is sent away
			cc.st.partings[parting{ofCaller, reason}]++
		}
		cc.leave()
	case next != 0:
		cc.st.SetTimer(&cc.timer, next)
	}
}
