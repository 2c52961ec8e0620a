package relay

// ReleaseListeners stops taking callers and closes the relay's copies of its
// listeners: the sockets live on in another process, which takes the callers
// that wait there. Each Serve returns ErrClosed; Drain comes next.
//
// Health/Check goes on to say what it said. The address that a caller knows is
// served on, and one that watches would give up its connection, and its calls
// with it, before it has heard of the GOAWAY.
func (r *Relay) ReleaseListeners() {
	r.mu.Lock()
	r.released = true
	r.mu.Unlock()
	r.door.close()
}
