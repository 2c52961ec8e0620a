package relay

import "net"

// Serve takes callers from ln until the relay drains or closes, and returns
// door.ErrClosed then. Any other error means that the listener is broken.
func (r *Relay) Serve(ln net.Listener) error { return r.door.Serve(ln) }

// ServeConn serves one caller whose connection was made elsewhere: accepted by other code,
// over TLS, with its first bytes already read, or in memory (net.Pipe). It has the same
// flow control as any caller (R22).
func (r *Relay) ServeConn(nc net.Conn) {
	st := r.next()
	from := r.sources.Enter(callerAddress(nc), r.mostConnections(), r.scarce(nc), r.now())
	if from == nil {
		st.reject(nc)
		return
	}
	st.do(func() { st.admit(nc, from, "") })
}

// next returns the shard that gets the next connection, in turn.
func (r *Relay) next() *shardState {
	return r.shards[r.shardTurn.Add(1)%uint32(len(r.shards))]
}

// ReleaseListeners stops accepting callers and closes the relay's copies of its listeners:
// the sockets live on in another process, which accepts the callers that wait there.
// Connections that were accepted stay served. Each Serve returns door.ErrClosed; Drain
// comes next, and sends the usual two GOAWAYs.
//
// The answer of Health/Check stays as it was: the caller's address is still served, and a
// caller that watches would otherwise give up its connection and its calls before the
// GOAWAY.
func (r *Relay) ReleaseListeners() {
	r.mu.Lock()
	r.released = true
	r.mu.Unlock()
	r.door.Release()
}
