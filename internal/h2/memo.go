package h2

import (
	"bytes"
	"math/bits"
)

// Bounds of a memo: blocks that are longer are decoded every time.
const (
	maxMemoIn  = 512
	maxMemoOut = 1024
)

// memo remembers the last block of its kind, for peers that send the same block for call
// after call: callers whose fields are all indexed or all literals, workers with their
// trailers.
//
// A block means the same again if its octets are the same and the dynamic table
// has not changed; one that changes the table itself is never kept. The result
// is kept when a block is seen for the second time, so that blocks that differ
// every time cost one short copy.
type memo struct {
	in       []byte
	version  uint64 // of the table when in was seen
	complete bool   // the rest is filled in
	enc      []byte
	listSize int
	fields   int
	status   int
	same     uint64
	seen     uint64
	sights   []sighting // of the ids in seen
}

// recall fills b if in is the block that m has kept. twice reports that in was the last
// block, and that its result is not kept yet.
func (m *memo) recall(b *Block, in []byte, version uint64) (done, twice bool) {
	if m.version != version || !bytes.Equal(m.in, in) || len(in) == 0 {
		return false, false
	}
	if !m.complete {
		return false, true
	}
	b.Enc = append(b.Enc, m.enc...)
	b.ListSize, b.Fields, b.Status, b.seen, b.Same = m.listSize, m.fields, m.status, m.seen, m.same
	for i := range m.sights {
		s := &m.sights[i]
		b.watched[s.id%maxWatched] = *s
	}
	return true, false
}

// see remembers the octets of a good block that has not changed the table.
func (m *memo) see(in []byte, version uint64) {
	m.complete = false
	if len(in) > maxMemoIn {
		m.in = m.in[:0]
		return
	}
	m.in, m.version = append(m.in[:0], in...), version
}

// keep completes the memo with the result of the seen block, and gives it a number.
func (m *memo) keep(b *Block) {
	if len(b.Enc) > maxMemoOut {
		return
	}
	m.same++
	b.Same = m.same
	m.enc = append(m.enc[:0], b.Enc...)
	m.listSize, m.fields, m.status, m.seen = b.ListSize, b.Fields, b.Status, b.seen
	m.sights = m.sights[:0]
	for rest := b.seen; rest != 0; rest &= rest - 1 {
		m.sights = append(m.sights, b.watched[bits.TrailingZeros64(rest)])
	}
	m.complete = true
}
