package rawh2

import "math/bits"

// table has the lanes that have a call, by stream. A stream has one slot, found by the
// low bits of its id; ids are chosen so that no two calls have the same one.
type table struct {
	slots []*lane // a power of two, so that there are more than lanes
	used  int
}

// newTable returns one with room for so many calls at a time.
func newTable(lanes int) table { return table{slots: make([]*lane, 1<<bits.Len(uint(2*lanes)))} }

func (t *table) slot(stream uint32) **lane {
	return &t.slots[stream>>1&uint32(len(t.slots)-1)] // ids of a client are odd
}

// of returns the lane of a stream, nil if it has no call.
func (t *table) of(stream uint32) *lane {
	if l := *t.slot(stream); l != nil && l.stream == stream {
		return l
	}
	return nil
}

// next is the first id from stream on that can be put: ids may be left out (RFC 9113,
// 5.1.1).
func (t *table) next(stream uint32) uint32 {
	for *t.slot(stream) != nil {
		stream += 2
	}
	return stream
}

// put takes a lane whose stream is one that next has returned.
func (t *table) put(l *lane) {
	*t.slot(l.stream) = l
	t.used++
}

// remove takes out a lane that was put.
func (t *table) remove(l *lane) {
	*t.slot(l.stream) = nil
	t.used--
}
