package socket

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// entryBytes is the memory of an event in a queue, beside its frame: 16 bytes of an
	// array of which only a quarter may be in use.
	entryBytes = 64

	// With pausedBytes of unread replies the socket is not read from.
	pausedBytes = 64 << 10

	// If the socket has more of the budget than it may, scarceBytes are enough for that;
	// results beyond end it if the client has read nothing for slowAfter. A client that
	// reads does not pay for the memory of others.
	scarceBytes = 4 << 10
	slowAfter   = time.Second

	// mostReplyBytes of unread replies end a socket: results of calls that it made before
	// it was paused.
	mostReplyBytes = 1 << 20

	// mostBatch and mostBatchBytes bound one write; a longer frame goes alone.
	mostBatch, mostBatchBytes = 64, 64 << 10
)

// outbox is the output of a socket. A goroutine writes while it is not empty.
//
// Life: newOutbox; replies and events; end, after which nothing is taken; drained.
// Concurrency: every method may be called from anywhere and, but for awaitRoom, does
// not block.
type outbox struct {
	conn         net.Conn
	account      *account
	most         int  // bytes of events
	tells        bool // the client is told of lost events
	writeTimeout time.Duration
	dropped      func(events int)
	closed       func()        // the connection is; it does not block
	batches      *sync.Pool    // of *batch
	drainedCh    chan struct{} // closed when ended and written, or failed

	mu      sync.Mutex
	room    sync.Cond // replies were written, or it has ended
	replies fifo
	events  fifo
	number  uint64
	sending int       // bytes of replies that are being written
	writing bool      // a goroutine is writing
	since   time.Time // when the present write began
	ended   bool      // takes nothing more
	hangUp  bool      // close the connection when all is written
	done    bool      // drained is closed
	why     endReason // why it has failed
}

func newOutbox(conn net.Conn, o *Options, account *account, batches *sync.Pool, dropped func(int), closed func()) *outbox {
	b := &outbox{conn: conn, account: account, most: o.QueueBytes, writeTimeout: o.WriteTimeout, batches: batches, dropped: dropped, closed: closed, drainedCh: make(chan struct{})}
	b.room.L = &b.mu
	return b
}

// reply queues a frame that must not be lost. It fails the socket if the client reads too
// little.
func (o *outbox) reply(f *frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.push(&o.replies, f)
	before := o.replies.bytes + o.sending - len(f.bytes) // a single long reply is fine
	if before > mostReplyBytes || before > scarceBytes && !o.account.fits() && time.Since(o.since) > slowAfter {
		o.fail(endSlow)
	}
}

// replyIfRoom queues a frame if the client has read enough, and reports whether it has.
// After the end it takes the frame and drops it.
func (o *outbox) replyIfRoom(f *frame) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended && !o.hasRoom() {
		return false
	}
	o.push(&o.replies, f)
	return true
}

// hasRoomNow reports whether the client has read enough.
func (o *outbox) hasRoomNow() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ended || o.hasRoom()
}

// awaitRoomUntil is awaitRoom that also ends with ctx. The end of ctx has to call wakeAll.
func (o *outbox) awaitRoomUntil(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.ended && !o.hasRoom() && ctx.Err() == nil {
		o.room.Wait()
	}
}

// wakeAll makes all goroutines that wait for room look again.
func (o *outbox) wakeAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.room.Broadcast()
}

// event queues an event. If too many bytes wait the oldest events are dropped. A client
// that is told of losses loses all events, and event reports false.
func (o *outbox) event(f *frame) (kept bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.account.force(entryBytes)
	}
	o.push(&o.events, f)
	for o.events.bytes > o.most && o.events.len() > 1 {
		if o.tells {
			o.dropEvents(o.events.len())
			return false
		}
		o.dropEvents(1)
	}
	return true
}

// shed drops all events and returns how many bytes they had.
func (o *outbox) shed() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.events.bytes
	o.dropEvents(o.events.len())
	return n
}

// backlog returns the bytes of events that wait.
func (o *outbox) backlog() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.events.bytes
}

// dropEvents drops the n oldest events. The caller holds mu.
func (o *outbox) dropEvents(n int) {
	for range n {
		o.popEvent().drop()
	}
	if n > 0 {
		o.dropped(n)
	}
}

// popEvent takes the oldest event out. The caller holds mu.
func (o *outbox) popEvent() *frame {
	o.account.Give(entryBytes)
	return o.events.pop().frame
}

// push queues a frame with the next number. The caller holds mu.
func (o *outbox) push(q *fifo, f *frame) {
	if o.ended {
		f.drop() // too late
		return
	}
	o.number++
	q.push(entry{f, o.number})
	if !o.writing {
		o.writing, o.since = true, time.Now()
		go o.write() // ends when all is written, or with the connection
	}
}

// awaitRoom waits while too many replies are unread. It reports false at the end.
func (o *outbox) awaitRoom() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.ended && !o.hasRoom() {
		o.room.Wait()
	}
	return !o.ended
}

// hasRoom reports whether another request may be read. The caller holds mu.
func (o *outbox) hasRoom() bool {
	unread := o.replies.bytes + o.sending
	return unread <= scarceBytes || unread <= pausedBytes && o.account.fits()
}

// end ends the outbox. Queued frames are still written, then last, if it is not nil; then
// the connection is closed if hangUp says so.
func (o *outbox) end(last *frame, hangUp bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if last != nil {
		o.push(&o.replies, last)
	}
	o.ended = true
	o.hangUp = o.hangUp || hangUp
	o.room.Broadcast()
	if !o.writing {
		o.finish()
	}
}

// abort drops everything and closes the connection.
func (o *outbox) abort() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fail(endNone)
}

// cause is the reason for which the outbox has failed, or endNone.
func (o *outbox) cause() endReason {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.why
}

// drained is closed when nothing is left to write.
func (o *outbox) drained() <-chan struct{} { return o.drainedCh }

// fail ends the outbox without writing the rest. The caller holds mu.
func (o *outbox) fail(why endReason) {
	o.why = o.why.or(why)
	o.ended, o.hangUp = true, true
	o.discard()
	o.hang() // a write that is under way ends
	o.room.Broadcast()
	if !o.writing {
		o.finish()
	}
}

// discard empties the queues. The caller holds mu.
func (o *outbox) discard() {
	for o.replies.len() > 0 {
		o.replies.pop().frame.drop()
	}
	for o.events.len() > 0 {
		o.popEvent().drop()
	}
}

// finish closes drained. The caller holds mu.
func (o *outbox) finish() {
	if o.done {
		return
	}
	o.done = true
	close(o.drainedCh)
	if o.hangUp {
		o.hang()
	}
}

// hang closes the connection.
func (o *outbox) hang() {
	o.conn.Close()
	o.closed()
}

// batch is the frames of one write. It comes from a pool: on the stack of a goroutine that
// writes a single event it would cost more than the write.
type batch struct {
	frames [mostBatch]*frame
	lines  [mostBatch][]byte
}

// write writes until nothing is left.
func (o *outbox) write() {
	b, _ := o.batches.Get().(*batch)
	defer o.batches.Put(b)
	for {
		frames, replies := o.take(b.frames[:0])
		if len(frames) == 0 {
			return
		}
		err := o.conn.SetWriteDeadline(o.since.Add(o.writeTimeout))
		switch {
		case err != nil:
		case len(frames) == 1:
			_, err = o.conn.Write(frames[0].bytes)
		default:
			for i, f := range frames {
				b.lines[i] = f.bytes
			}
			buffers := net.Buffers(b.lines[:len(frames)])
			_, err = buffers.WriteTo(plain(o.conn))
		}
		for _, f := range frames {
			f.drop()
		}
		o.sent(replies, err)
		clear(b.frames[:len(frames)])
		clear(b.lines[:len(frames)])
	}
}

// plain returns the connection below a wrapper that only counts (relay.Guest): many pieces
// in one system call are possible only there.
func plain(c net.Conn) net.Conn {
	if counted, ok := c.(interface{ Plain() net.Conn }); ok {
		return counted.Plain()
	}
	return c
}

// take takes the next frames, in the order in which they came, and returns how many bytes
// of them are replies. Without frames the writing goroutine ends.
func (o *outbox) take(batch []*frame) (_ []*frame, replies int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for bytes := 0; len(batch) < mostBatch && bytes < mostBatchBytes; {
		var f *frame
		switch r, e := o.replies.len() > 0, o.events.len() > 0; {
		case r && (!e || o.replies.first().number < o.events.first().number):
			f = o.replies.pop().frame
			replies += len(f.bytes)
		case e:
			f = o.popEvent()
		}
		if f == nil {
			break
		}
		bytes += len(f.bytes)
		batch = append(batch, f)
	}
	o.sending, o.since = replies, time.Now()
	if len(batch) == 0 {
		o.writing = false
		if o.ended {
			o.finish()
		}
	}
	return batch, replies
}

// sent notes the end of a write.
func (o *outbox) sent(replies int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sending -= replies
	o.room.Broadcast()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		o.fail(endSlow)
	case err != nil:
		o.fail(endLost)
	}
}
