package door

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

const (
	// backlogTime is how long a listener that closes goes on to take what the
	// kernel has accepted already (R17).
	backlogTime = 20 * time.Millisecond
	// Pauses when there are no descriptors: the first one, doubled up to the last.
	firstPause = 5 * time.Millisecond
	lastPause  = time.Second
)

// Server takes the connections that are accepted. ServeConn returns soon: nothing is
// accepted meanwhile.
type Server interface{ ServeConn(nc net.Conn) }

// Door is listeners whose connections go to one Server.
//
// Life: New, Serve for each listener, then Drain or Release, or Close.
// Concurrency: every method may be called from anywhere, also more than once.
type Door struct {
	server Server
	log    *slog.Logger

	mu        sync.Mutex // a leaf
	listeners []net.Listener
	serving   sync.WaitGroup
	closed    bool
}

// ErrClosed is returned by Serve when the door closes.
var ErrClosed = errors.New("door: closed")

// New returns a door without listeners.
func New(server Server, log *slog.Logger) *Door { return &Door{server: server, log: log} }

// Serve accepts on ln until the door closes, and returns ErrClosed then. Any other
// error means that the listener is broken. The door closes ln.
func (d *Door) Serve(ln net.Listener) error {
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

func (d *Door) accept(ln net.Listener) error {
	pause := time.Duration(0)
	for {
		nc, err := ln.Accept()
		if err == nil {
			pause = 0
			d.server.ServeConn(nc)
			continue
		}
		if d.isClosed() {
			return ErrClosed
		}
		var temporary interface{ Temporary() bool }
		if !errors.As(err, &temporary) || !temporary.Temporary() {
			return err
		}
		// Out of descriptors: wait for some to come back.
		pause = min(max(2*pause, firstPause), lastPause)
		d.log.Warn("cannot accept a connection", "error", err, "retry_in", pause.String())
		time.Sleep(pause)
	}
}

func (d *Door) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// Drain takes what the kernel has accepted already and closes the listeners (R17).
func (d *Door) Drain() {
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
	d.Close()
}

// leave returns how long a listener that closes has to be accepted on. One that
// shares its port with other processes keeps new callers away first.
func leave(ln net.Listener) time.Duration {
	if shared, ok := ln.(interface{ Leave() time.Duration }); ok {
		return max(shared.Leave(), backlogTime)
	}
	return backlogTime
}

// Release closes the listeners and leaves no trace of it at their sockets, which
// live on in another process. What Accept takes at this very moment is served: each
// Serve ends behind it.
func (d *Door) Release() {
	d.mu.Lock()
	for _, ln := range d.listeners {
		if l, ok := ln.(interface{ SetUnlinkOnClose(unlink bool) }); ok {
			l.SetUnlinkOnClose(false) // the path leads to the other process now
		}
	}
	d.mu.Unlock()
	d.Close()
}

// Close closes the listeners, and returns when each Serve has ended.
func (d *Door) Close() {
	d.mu.Lock()
	d.closed = true
	for _, ln := range d.listeners {
		_ = ln.Close() // a second close changes nothing
	}
	d.mu.Unlock()
	d.serving.Wait()
}
