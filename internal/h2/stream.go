package h2

import (
	"math"
)

// Stream is one side of a call on one connection: its id, its windows, and
// which directions have ended.
//
// Life: the zero value is handed to a Conn (Conn.Open, or as the answer of
// Handler.Accept), belongs to it until both directions have ended or either
// side has reset it, and may then be used again after Clear.
//
// Concurrency: guarded by the lock of the connection's shard.
type Stream struct {
	// Owner is for the caller; the engine does not use it.
	Owner any

	conn *Conn // nil before it is opened and after it is closed
	id   uint32

	sendWindow int64 // what the peer lets us send; negative after it lowered its setting
	recvWindow int64 // what the peer may still send
	recvSize   int64 // the size that recvWindow is refilled to
	recvDebt   int64 // consumed bytes whose credit is not returned yet

	contentLeft int64 // content that is still to come by the peer's content-length; noContentLength

	headStart uint64 // position of its HEADERS in the bytes ever written (client role)

	sentHead   bool // response HEADERS written (server role), request (client role)
	gotHead    bool // final request or response HEADERS received
	localDone  bool // we have sent END_STREAM
	remoteDone bool // the peer has sent END_STREAM
	noContent  bool // the answer has none (client role)
	wants      bool // its owner waits for Handler.Writable

	queued     bool // in the connection's list of streams that wait
	next, prev *Stream
}

// ID returns the stream's number on its connection.
func (s *Stream) ID() uint32 { return s.id }

// Conn returns the connection on which the stream is open, nil if it is not open.
func (s *Stream) Conn() *Conn { return s.conn }

// Open reports whether the stream is open in at least one direction.
func (s *Stream) Open() bool { return s.conn != nil }

// Window returns how many bytes of DATA from the peer may be on the way or waiting here at
// a time; it grows as they leave (Config.MaxWindow).
func (s *Stream) Window() int { return int(s.recvSize) }

// Debt returns how many bytes have left without their credit, which is given back in
// larger pieces.
func (s *Stream) Debt() int { return int(s.recvDebt) }

// SentHead reports whether a header block was written on the stream.
func (s *Stream) SentHead() bool { return s.sentHead }

// LocalDone reports whether END_STREAM was sent.
func (s *Stream) LocalDone() bool { return s.localDone }

// Clear makes a closed stream ready for its next use; Owner is kept.
func (s *Stream) Clear() {
	if s.conn != nil {
		panic("internal error: h2: an open stream was cleared") //nolint:forbidigo // a broken invariant
	}
	*s = Stream{Owner: s.Owner}
}

// streamTable finds the open streams of a connection by id: open addressing
// with linear probing over a power of two. Ids of one side are all odd (or all
// even), so id/2 spreads them without collisions as long as they are dense. The
// ids stand beside the pointers, so that probing touches no other stream.
type streamTable struct {
	slots []streamSlot
	n     int
	reach uint32 // no member is further from its home than this
}

type streamSlot struct {
	s  *Stream // nil: the slot is free
	id uint32
}

func (t *streamTable) get(id uint32) *Stream {
	if t.n == 0 {
		return nil
	}
	mask := uint32(len(t.slots) - 1)
	for i := id >> 1 & mask; ; i = (i + 1) & mask {
		if slot := &t.slots[i]; slot.s == nil || slot.id == id {
			return slot.s
		}
	}
}

func (t *streamTable) put(s *Stream) {
	if 4*(t.n+1) > 3*len(t.slots) {
		t.resize(max(8, 2*len(t.slots)))
	}
	t.n++
	t.insert(streamSlot{s, s.id})
}

func (t *streamTable) insert(slot streamSlot) {
	mask := uint32(len(t.slots) - 1)
	home := slot.id >> 1 & mask
	i := home
	for t.slots[i].s != nil {
		i = (i + 1) & mask
	}
	t.slots[i] = slot
	t.reach = max(t.reach, (i-home)&mask)
}

func (t *streamTable) resize(size int) {
	old := t.slots
	t.slots, t.reach = make([]streamSlot, size), 0
	for _, slot := range old {
		if slot.s != nil {
			t.insert(slot)
		}
	}
}

// remove takes the stream out and moves later members of its run back, so that
// no tombstones are needed. Runs are long, since ids are dense, but a member
// that could move is at most reach away.
func (t *streamTable) remove(id uint32) {
	mask := uint32(len(t.slots) - 1)
	free := id >> 1 & mask
	for t.slots[free].s == nil || t.slots[free].id != id {
		free = (free + 1) & mask
	}
	t.n--
	for i := (free + 1) & mask; (i-free)&mask <= t.reach && t.slots[i].s != nil; i = (i + 1) & mask {
		home := t.slots[i].id >> 1 & mask
		if (i-home)&mask >= (i-free)&mask { // it may not move before its home
			t.slots[free], free = t.slots[i], i
		}
	}
	t.slots[free] = streamSlot{}
}

// streamList is a doubly linked list of streams, first come first served.
type streamList struct {
	head, tail *Stream
}

func (l *streamList) push(s *Stream) {
	if s.queued {
		return
	}
	s.queued, s.prev, s.next = true, l.tail, nil
	if l.tail != nil {
		l.tail.next = s
	} else {
		l.head = s
	}
	l.tail = s
}

func (l *streamList) remove(s *Stream) {
	if !s.queued {
		return
	}
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		l.head = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	} else {
		l.tail = s.prev
	}
	s.queued, s.prev, s.next = false, nil, nil
}

// contentLength is the field with the number of octets of DATA of a message.
// Source: RFC 9110 section 8.6, RFC 9113 section 8.1.1.
const contentLength = "content-length"

// Stream.contentLeft counts down from the peer's content-length. Without that field it
// begins at noContentLength, from where no peer ever gets down to maxContent, so that
// counting needs no special case. A length beyond maxContent counts as maxContent: no
// peer can send that much either.
const (
	noContentLength = math.MaxInt64
	maxContent      = math.MaxInt64 / 2
)

// promises reports whether a block has a content-length.
func (b *Block) promises() bool { return b.saw(b.watch.length) }

// promised is the content-length of a good block; noContentLength without one.
func (b *Block) promised() int64 {
	w, found := b.Watched(int(b.watch.length))
	if !found {
		return noContentLength
	}
	n := int64(0)
	for _, c := range w.Value {
		if n = n*10 + int64(c-'0'); n > maxContent/10 {
			return maxContent
		}
	}
	return n
}

// expect begins to count the content after the head in c.block. Most heads have no
// content-length.
func (c *Conn) expect(s *Stream) {
	switch b := c.block; {
	case s.noContent, b.Status == 204, b.Status == 304:
		s.contentLeft = 0 // content-length says what another request would have got
	case b.promises():
		s.contentLeft = b.promised()
	}
}

// contentComplete reports whether a message may end now: no promised content is left.
func contentComplete(left int64) bool { return left == 0 || left > maxContent }

// NoContent says that the answer on a stream, which is not open yet, has no content,
// whatever its content-length is: the request's method is HEAD (client role; RFC 9110
// section 9.3.2).
func (s *Stream) NoContent() { s.noContent = true }
