package relay

import "net"

// Serve takes callers from ln until the relay drains or closes, and returns
// door.ErrClosed then. Any other error means that the listener is broken.
func (r *Relay) Serve(ln net.Listener) error { return r.door.Serve(ln) }

// ServeConn takes one caller whose connection was made elsewhere: accepted by
// others, over TLS, with bytes of it read before, or in memory (net.Pipe) by code of
// this process. It has the same flow control as any caller (R22).
func (r *Relay) ServeConn(nc net.Conn) {
	st := r.next()
	from := r.enters(callerAddress(nc), r.scarce(nc))
	if from == nil {
		st.turnAway(nc)
		return
	}
	st.accept(nc, from)
}

// next returns the stand whose turn it is to get a connection.
func (r *Relay) next() *stand {
	return r.stands[r.turn.Add(1)%uint32(len(r.stands))]
}

// ReleaseListeners stops taking callers and closes the relay's copies of its
// listeners: the sockets live on in another process, which takes the callers
// that wait there. Whom it has taken it serves. Each Serve returns door.ErrClosed;
// Drain comes next, and tells its callers to go in two steps as always.
//
// Health/Check goes on to say what it said. The address that a caller knows is
// served on, and one that watches would give up its connection, and its calls
// with it, before it has heard of the GOAWAY.
func (r *Relay) ReleaseListeners() {
	r.mu.Lock()
	r.released = true
	r.mu.Unlock()
	r.door.Release()
}
