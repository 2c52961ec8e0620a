package client

import (
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// write writes what is queued, and pings when the server is silent, until the
// connection ends.
func (l *link) write() {
	ping := time.NewTimer(l.options.Ping)
	defer ping.Stop()
	for {
		var err error
		select {
		case <-l.wake:
			runtime.Gosched() // who is about to ask for something does so first, and goes along
			err = l.writeAll(l.takeQueue())
		case <-ping.C:
			err = l.pingIfSilent(ping)
		case <-l.done:
			return
		}
		if err != nil {
			l.end(err)
			return
		}
	}
}

// takeQueue returns the frames that wait; they count as sent from here on.
func (l *link) takeQueue() (frames [][]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.queue {
		if o.w != nil {
			if o.w.gone {
				continue
			}
			o.w.sent = true
		}
		frames = append(frames, o.frame)
	}
	clear(l.queue)
	l.queue, l.queued = l.queue[:0], 0
	l.makeRoom()
	return frames
}

// writeAll writes frames with as few calls of the kernel as their length allows.
func (l *link) writeAll(frames [][]byte) error {
	if len(frames) == 0 {
		return nil
	}
	l.wire.cork()
	for _, frame := range frames {
		op := websocket.TextMessage
		if frame == nil {
			op, frame = websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
		}
		if err := l.ws.WriteMessage(op, frame); err != nil {
			return err
		}
	}
	return l.wire.flush()
}

// pingIfSilent pings if nothing has come for a while, and says when to look again.
func (l *link) pingIfSilent(again *time.Timer) error {
	silent := time.Since(time.Unix(0, l.lastRead.Load()))
	if left := l.options.Ping - silent; left > 0 {
		again.Reset(left)
		return nil
	}
	again.Reset(l.options.Ping)
	return l.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(l.options.WriteTimeout))
}

// mostCorked is how many bytes are gathered before they are written.
const mostCorked = 64 << 10

// corked is a connection that can gather what is written. Whatever deadline it is told,
// a write has the timeout.
//
// Concurrency: as net.Conn; cork and flush belong to one goroutine.
type corked struct {
	net.Conn

	timeout time.Duration

	mu       sync.Mutex
	gathers  bool
	gathered []byte
}

// SetWriteDeadline implements net.Conn. The reader of the WebSocket, which answers
// pings, would set one for what the writer has under way.
func (c *corked) SetWriteDeadline(time.Time) error { return nil }

// cork gathers from here on.
func (c *corked) cork() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gathers = true
}

// flush writes what was gathered, and gathers no more.
func (c *corked) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gathers = false
	if len(c.gathered) == 0 {
		return nil
	}
	_, err := c.write(c.gathered)
	c.gathered = c.gathered[:0]
	return err
}

// Write implements net.Conn.
func (c *corked) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.gathers {
		return c.write(b)
	}
	c.gathered = append(c.gathered, b...)
	if len(c.gathered) < mostCorked {
		return len(b), nil
	}
	_, err := c.write(c.gathered)
	c.gathered = c.gathered[:0]
	return len(b), err
}

func (c *corked) write(b []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
