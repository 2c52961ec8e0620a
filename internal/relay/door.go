package relay

import (
	"errors"
	"net"
	"sync"
	"time"
)

// backlogTime is how long a listener that closes goes on to take what the
// kernel has accepted already (R17).
const backlogTime = 20 * time.Millisecond

// door is where callers come in: listeners, whose connections are dealt to the
// shards in turn.
type door struct {
	relay *Relay

	mu        sync.Mutex
	listeners []net.Listener
	serving   sync.WaitGroup
	closed    bool
	turn      int
}

// ErrClosed is returned by Serve when the relay stops.
var ErrClosed = errors.New("relay: closed")

// Serve takes callers from ln until the relay drains or closes, and returns
// ErrClosed then. Any other error means that the listener is broken.
func (r *Relay) Serve(ln net.Listener) error {
	d := &r.door
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		_ = ln.Close()
		return ErrClosed
	}
	d.listeners = append(d.listeners, ln)
	d.serving.Add(1)
	d.mu.Unlock()
	defer d.serving.Done()
	return d.accept(ln)
}

func (d *door) accept(ln net.Listener) error {
	pause := time.Duration(0)
	for {
		nc, err := ln.Accept()
		if err == nil {
			pause = 0
			d.relay.ServeConn(nc)
			continue
		}
		if d.isClosed() {
			return ErrClosed
		}
		var temporary interface{ Temporary() bool }
		if !errors.As(err, &temporary) || !temporary.Temporary() {
			return err
		}
		// Out of descriptors: wait for some to come back, at most a second.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		d.relay.settings().Log.Warn("cannot accept a connection", "error", err, "retry_in", pause.String())
		time.Sleep(pause)
	}
}

func (d *door) next() *stand {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn = (d.turn + 1) % len(d.relay.stands)
	return d.relay.stands[d.turn]
}

func (d *door) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// drain takes what the kernel has accepted already and closes the listeners.
func (d *door) drain() {
	d.mu.Lock()
	d.closed = true
	for _, ln := range d.listeners {
		if l, ok := ln.(interface{ SetDeadline(time.Time) error }); ok {
			if l.SetDeadline(time.Now().Add(leave(ln))) == nil {
				continue
			}
		}
		_ = ln.Close()
	}
	d.mu.Unlock()
	d.serving.Wait()
	d.close()
}

// leave returns how long a listener that closes has to be accepted on. One that
// shares its port with other processes keeps new callers away first.
func leave(ln net.Listener) time.Duration {
	if shared, ok := ln.(interface{ Leave() time.Duration }); ok {
		return max(shared.Leave(), backlogTime)
	}
	return backlogTime
}

func (d *door) close() {
	d.mu.Lock()
	d.closed = true
	for _, ln := range d.listeners {
		_ = ln.Close() // a second close changes nothing
	}
	d.mu.Unlock()
	d.serving.Wait()
}

// ServeConn takes one caller whose connection was made elsewhere: by another
// door on the same port, or in memory (net.Pipe) by code of this process, which
// then has the same flow control as any caller (R22).
func (r *Relay) ServeConn(nc net.Conn) {
	st := r.door.next()
	if !r.enters() {
		st.turnAway(nc)
		return
	}
	st.accept(nc)
}
