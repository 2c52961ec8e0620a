package shard

import "io"

// How many bytes go through memory in one turn.
const (
	// carriedEach is how many bytes one end of a pair sends: 256 KiB for both.
	carriedEach = 128 << 10
	// carriedAll is the same for all pairs of the shard together.
	carriedAll = 1 << 20
	// carriedOnce is how many bytes one end sends before the others: so small calls do not
	// wait for large ones.
	carriedOnce = 16 << 10
)

// carriage counts the bytes that have gone through memory in one turn of a shard. Links
// with more bytes than a turn allows go on in the next turn, before new ones.
type carriage struct {
	turn uint64 // number of the turn
	sent int    // bytes of all pairs
}

// memory connects a link with another one of the same shard: the output of one engine is
// fed to the other. It has no goroutine and no pipe, and never waits for a peer that does
// not read: an engine always reads, and the windows bound the bytes that its owner does
// not take.
//
// Bytes are only carried in the turn (carry), so that no engine is fed while another one
// is, whatever its handler does meanwhile. They are fed from a buffer that was taken out
// of the engine, for the bytes may cause either end to be closed.
type memory struct {
	link *Link
	peer *memory

	buf     []byte // taken from the link's engine; nil: nothing is taken
	off     int    // bytes of buf that the peer has been fed
	feeding bool
	ended   bool // the peer sends no more, and takes nothing

	turn    uint64 // number of its last turn
	carried int    // bytes carried in that turn
}

// Join makes two links each other's transport. Neither had one before. Called under
// the lock.
//
// The links behave as with a socket: Finish has the peer see the end behind the last
// byte, Close has it see the end at once; either way it is closed, in the next turn.
func (s *Shard) Join(a, b *Link) {
	if s.stopped {
		a.Close(errStopped)
		b.Close(errStopped)
	}
	x, y := &memory{link: a}, &memory{link: b}
	x.peer, y.peer = y, x
	a.driver, b.driver = x, y
	x.ended, y.ended = b.closed, a.closed
	s.markDirty(a)
	s.markDirty(b)
}

// carry feeds the peer with a part of the engine's output. The rest follows after the parts
// of others, as far as this turn allows, or in the next turn.
func (d *memory) carry() {
	if d.ended {
		d.link.Close(io.EOF)
	}
	if !d.take() {
		return
	}
	n := min(len(d.buf)-d.off, carriedOnce, d.allowance())
	if n == 0 {
		d.link.shard.goOn(d.link)
		return
	}
	d.feed(n)
	d.link.shard.markDirty(d.link) // it may have a rest, or new output
}

// take takes output of the engine. It reports whether bytes have to be carried, and the
// peer takes them.
func (d *memory) take() bool {
	if d.link.closed || d.ended {
		return false // the end that has ended is marked dirty: its turn comes
	}
	if d.buf == nil {
		d.buf, d.off = d.link.Conn.Take()
	}
	return d.buf != nil
}

// allowance is how many bytes may still be carried in this turn.
func (d *memory) allowance() int {
	c := &d.link.shard.carriage
	if d.turn != c.turn {
		d.turn, d.carried = c.turn, 0
	}
	return min(carriedEach-d.carried, carriedAll-c.sent)
}

// goOn makes the next turn look at a link that has had its part of this one.
func (s *Shard) goOn(l *Link) {
	l.dirty = true
	s.later = append(s.later, l)
}

// feed hands the next n bytes to the peer's engine, which may close either end.
func (d *memory) feed(n int) {
	p := d.buf[d.off : d.off+n]
	d.off += n
	d.carried += n
	d.link.shard.carriage.sent += n
	d.feeding = true
	d.peer.link.feed(p)
	d.feeding = false
	switch {
	case d.link.closed:
		d.drop()
	case d.off == len(d.buf):
		buf := d.buf
		d.buf = nil
		d.link.Conn.Returned(buf)
	}
}

// drop gives up the bytes that were taken and not carried.
func (d *memory) drop() {
	d.link.shard.pool.Put(d.buf)
	d.buf = nil
}

// end tells the peer that no more bytes come.
func (d *memory) end() {
	d.peer.ended = true
	d.link.shard.markDirty(d.peer.link)
}

// flush does nothing: bytes are carried in the turn.
func (d *memory) flush() {}

func (d *memory) progress() uint64 { return d.link.Conn.Accepted() }

func (d *memory) finish() { d.end() }

func (d *memory) close() {
	if !d.feeding {
		d.drop()
	}
	d.end()
}
