package relay

// ReleaseListeners stops taking callers and closes the relay's copies of its
// listeners: the sockets live on in another process, which takes the callers
// that wait there. Whom it has taken it serves. Each Serve returns ErrClosed; Drain
// comes next, and tells its callers to go in two steps as always.
//
// Health/Check goes on to say what it said. The address that a caller knows is
// served on, and one that watches would give up its connection, and its calls
// with it, before it has heard of the GOAWAY.
func (r *Relay) ReleaseListeners() {
	r.mu.Lock()
	r.released = true
	r.mu.Unlock()
	r.door.release()
}

// release closes the listeners and leaves no trace of it at their sockets. What
// Accept takes at this very moment is served: each Serve ends behind it.
func (d *door) release() {
	d.mu.Lock()
	for _, ln := range d.listeners {
		if l, ok := ln.(interface{ SetUnlinkOnClose(unlink bool) }); ok {
			l.SetUnlinkOnClose(false) // the path leads to the other process now
		}
	}
	d.mu.Unlock()
	d.close()
}
