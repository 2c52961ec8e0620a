package shard

import (
	"errors"
	"net"
	"slices"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

// errStopped is the reason of links that end because their shard does.
var errStopped = errors.New("shard stopped")

// ErrHandshake is the reason of a link whose peer has not begun HTTP/2 in time.
var ErrHandshake = errors.New("no HTTP/2 preface in time")

const (
	// linger is how long a finished connection stays half-closed, so that the last
	// frames reach a peer that is still sending: closing a socket with unread bytes
	// would reset it and destroy them. It is also how long a peer may take nothing
	// while output is left.
	linger = time.Second
)

// Watcher is told when a link has ended, under the shard's lock. The engine's
// Close has run: every stream was told Lost.
type Watcher interface {
	LinkClosed(l *Link, reason error)
}

// driver connects a link with its transport. All methods run under the shard's lock.
type driver interface {
	flush()           // send as much output as the transport takes at once; may end the link
	progress() uint64 // bytes that the transport has taken so far
	finish()          // half-close: no more output will come
	close()           // release the transport
}

// Link is one connection with its engine and its transport.
//
// Life: Attach or Join, then reading and flushing happen by themselves, until the peer
// ends, the engine fails, or Close or Finish is called; the Watcher is told once.
// Concurrency: guarded by the shard's lock.
type Link struct {
	Conn *h2.Conn

	shard    *Shard
	caller   bool // the peer is a caller
	watcher  Watcher
	driver   driver
	reason   error // why it ends
	dirty    bool
	closed   bool
	ending   bool   // closes when its output is gone
	finished bool   // half-closed
	unsent   bool   // its driver has output that the engine does not have any more
	broken   bool   // its peer has broken the rules and is not waited for
	timer    Timer  // end of the linger time; before the end, of the time for a frame
	moved    uint64 // bytes that the transport had taken when the timer was set
}

// NewLink returns a link without a transport: the engine may be used at once, its output
// waits for Attach or Join. Called under the lock.
func (s *Shard) NewLink(cfg *h2.Config, h h2.Handler, w Watcher) *Link {
	l := &Link{shard: s, caller: cfg.Server, watcher: w, driver: noTransport{}}
	l.timer.Owner = l
	l.Conn = h2.NewConn(cfg, h, s.pool, &s.block, l)
	s.links[l] = struct{}{}
	return l
}

// Attach gives the link its transport and starts to read. Called under the
// lock. A transport for a link that has ended meanwhile is closed.
//
// A *net.TCPConn or *net.UnixConn is closed at once where its descriptor can be
// taken over: the link has a duplicate of it.
func (l *Link) Attach(nc net.Conn) {
	if l.shard.stopped {
		l.Close(errStopped)
	}
	if l.closed {
		_ = nc.Close() // it was never used
		return
	}
	if d := newSocket(l, nc); d != nil {
		l.driver = d
		l.shard.markDirty(l)
		return
	}
	d := newStreamDriver(l, nc)
	l.driver = d
	go d.readLoop() // ends when the connection is closed
	l.shard.markDirty(l)
}

// Acked returns how many bytes the peer's machine has acknowledged, and whether other
// bytes are not acknowledged yet; zero where the transport does not tell.
func (l *Link) Acked() (total uint64, behind bool) {
	if d, ok := l.driver.(interface{ acked() (uint64, bool) }); ok && !l.closed {
		return d.acked()
	}
	return 0, false
}

// Dirty implements h2.Waker.
func (l *Link) Dirty(*h2.Conn) { l.shard.markDirty(l) }

// Closed reports whether the link has ended.
func (l *Link) Closed() bool { return l.closed }

// Finish ends the link when its output is flushed: half-close, wait at most a second for
// the peer to do the same, close. It does not wait for a peer that takes no output for a
// second.
func (l *Link) Finish(reason error) {
	if l.closed || l.ending {
		return
	}
	l.ending, l.reason = true, reason
	l.shard.markDirty(l)
	l.await(l.shard.Now())
}

// await gives the peer another linger time.
func (l *Link) await(now time.Duration) {
	l.moved = l.driver.progress()
	l.shard.SetTimer(&l.timer, now+linger)
}

// Close ends the link now.
func (l *Link) Close(reason error) {
	if l.closed {
		return
	}
	if l.reason == nil {
		l.reason = reason
	}
	l.closed = true
	l.shard.StopTimer(&l.timer)
	delete(l.shard.links, l)
	l.driver.close()
	l.Conn.Close()
	l.watcher.LinkClosed(l, l.reason)
}

// CloseFlushed ends the link now, after sending as much output as its transport takes at
// once. The transport memory takes nothing outside its turn.
func (l *Link) CloseFlushed(reason error) {
	if !l.closed {
		l.driver.flush()
	}
	l.Close(reason)
}

// writeFailed is called by a driver with a separate reader when it cannot send any more.
// The bytes that the peer sent before it left count (R4): the reader ends the link when it
// has read them, at most after the linger time.
func (l *Link) writeFailed(err error, now time.Duration) {
	if l.closed {
		return
	}
	if l.ending {
		l.Close(err)
		return
	}
	l.reason = err
	l.await(now)
}

// Expired implements Expirer: the linger time is over; or, before the end, the time for a
// frame that the peer has begun.
func (l *Link) Expired(_ *Timer, now time.Duration) {
	if !l.ending && l.reason == nil {
		l.failed(l.Conn.Overdue(now), nil)
		l.watchFrame()
		return
	}
	if !l.finished && !l.broken && l.driver.progress() != l.moved {
		l.await(now) // slow, but it reads: answers are not cut off
		return
	}
	l.Close(l.reason)
}

// afterFlush half-closes a link that is ending and has nothing left to send.
func (l *Link) afterFlush(now time.Duration) {
	if l.ending && !l.closed && !l.finished && !l.unsent && l.Conn.Idle() {
		l.finished = true
		l.await(now)
		l.driver.finish()
	}
}

// feed hands bytes to the engine and ends the link if the engine fails.
func (l *Link) feed(p []byte) {
	if l.ending {
		return // only the peer's end matters
	}
	l.failed(l.Conn.Feed(p, l.shard.Now()), p)
	if l.Conn.Due() != 0 && !l.timer.Set() {
		l.watchFrame()
	}
}

// GiveUp ends the link if its engine has excess memory (h2.Conn.GiveUp), and reports
// whether it had.
func (l *Link) GiveUp() bool {
	err := l.Conn.GiveUp()
	l.failed(err, nil)
	return err != nil
}

// failed ends the link after an error of the engine, which was fed p.
func (l *Link) failed(err error, p []byte) {
	if err != nil && !l.closed {
		l.tell(err, p)
		l.Finish(err)
	}
}

// watchFrame sets the timer for the frame or header block that the peer has begun. The
// timer is not stopped when that is finished: mostly the peer has begun another one by
// then, and the timer fires at most once in the time that a peer has.
func (l *Link) watchFrame() {
	if due := l.Conn.Due(); due != 0 && !l.closed {
		l.shard.SetTimer(&l.timer, due)
	}
}

// strangerWatcher is a Watcher for peers that speak another protocol. It gets all bytes
// that were read, and may answer (h2.Conn.Raw) or Detach the link.
type strangerWatcher interface{ NotHTTP2(l *Link, first []byte) }

// tell tells the watcher why the engine has failed.
func (l *Link) tell(err error, p []byte) {
	if errors.Is(err, h2.ErrNotHTTP2) {
		if w, ok := l.watcher.(strangerWatcher); ok {
			w.NotHTTP2(l, slices.Concat(l.Conn.Begun(), p))
		}
		return
	}
	why, broken := errors.AsType[*h2.ConnError](err)
	l.broken = broken
	if f, ok := l.watcher.(interface {
		Broken(l *Link, why *h2.ConnError)
	}); ok && broken {
		f.Broken(l, why)
	}
}

// noTransport is the driver until Attach or Join.
type noTransport struct{}

func (noTransport) flush()           {}
func (noTransport) progress() uint64 { return 0 }
func (noTransport) finish()          {}
func (noTransport) close()           {}
