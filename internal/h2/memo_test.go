package h2

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Blocks mean the same with and without the memo, in any order of repeats, insertions,
// faults and size updates.
func TestMemoChangesNothing(t *testing.T) {
	watch := NewWatchList(":path", "grpc-timeout", "grpc-status")
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		with, without := newDecoder(watch, 4096, 1<<16), newDecoder(watch, 4096, 1<<16)
		var a, b Block
		var recent []kindOfBlock
		for range 60 {
			if len(recent) == 0 || rng.IntN(3) == 0 {
				recent = append(recent, newBlock(rng, with.table.count))
			}
			of := recent[len(recent)-1-rng.IntN(min(len(recent), 3))]
			without.memos = [3]memo{}
			errA, errB := with.Transcode(&a, of.in, of.kind), without.Transcode(&b, of.in, of.kind)
			testkit.Need(t, errors.Is(errA, errB) || errors.Is(errB, errA),
				"seed %d: %v with the memo, %v without, of %x", seed, errA, errB, of.in)
			if _, fatal := errors.AsType[CompressionError](errA); fatal {
				break
			}
			compareBlocks(t, &a, &b)
			if x, y := with.table, without.table; x.limit != y.limit || x.inserted != y.inserted {
				t.Fatalf("seed %d: %d insertions, limit %d with the memo; %d, %d without, of %x", seed, x.inserted, x.limit, y.inserted, y.limit, of.in)
			}
		}
	}
}

func compareBlocks(t *testing.T, a, b *Block) {
	t.Helper()
	testkit.Need(t, bytes.Equal(a.Enc, b.Enc) && a.ListSize == b.ListSize && a.Fields == b.Fields && a.seen == b.seen,
		"got %x (%d, %d), want %x (%d, %d)", a.Enc, a.ListSize, a.Fields, b.Enc, b.ListSize, b.Fields)
	for id := range 3 {
		x, foundX := a.Watched(id)
		y, foundY := b.Watched(id)
		testkit.Need(t, foundX == foundY && x.Start == y.Start && x.End == y.End && x.Count == y.Count && bytes.Equal(x.Value, y.Value),
			"watched %d: got %+v, want %+v", id, x, y)
	}
}

type kindOfBlock struct {
	kind Kind
	in   []byte
}

// newBlock makes a block of literals, indexed fields, insertions and faults, for a table
// of so many entries.
func newBlock(rng *rand.Rand, entries uint32) kindOfBlock {
	kind := Kind(rng.IntN(3))
	var in []byte
	if rng.IntN(4) == 0 {
		in = appendInt(in, 0x20, 5, uint32(rng.IntN(300)))
	}
	switch kind {
	case RequestBlock:
		in = append(in, 0x83, 0x86) // :method POST, :scheme http
		in = AppendField(in, ":path", "/a.B/"+string(rune('a'+rng.IntN(3))))
	case ResponseBlock:
		in = append(in, 0x88) // :status 200
	case TrailerBlock:
	}
	for range rng.IntN(4) {
		switch op := rng.IntN(8); {
		case op < 3 && entries > 0:
			in = append(in, 0x80|byte(62+rng.IntN(min(int(entries), 3))))
		case op < 5:
			in = append(in, 0x40, 1, 'k'+byte(rng.IntN(3)), 1, 'v')
		case op == 5:
			in = AppendField(in, "connection", "close")
		default:
			in = AppendField(in, "grpc-timeout", string(rune('1'+rng.IntN(3)))+"S")
		}
	}
	return kindOfBlock{kind, in}
}
