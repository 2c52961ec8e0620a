package h2

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"golang.org/x/net/http2/hpack"
)

// Blocks mean the same with and without the memo, in any order of repeats,
// insertions and size updates.
func TestMemoChangesNothing(t *testing.T) {
	watch := NewWatchList(":path", "grpc-timeout", "grpc-status")
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		with, without := newDecoder(watch, 4096, 1<<16), newDecoder(watch, 4096, 1<<16)
		var a, b Block
		var last []byte
		for range 60 {
			in := repeatedBlock(rng, last)
			last = in
			kind := Kind(rng.IntN(3))
			without.memos = [3]memo{}
			errA, errB := with.Transcode(&a, in, kind), without.Transcode(&b, in, kind)
			if !errors.Is(errA, errB) && !errors.Is(errB, errA) {
				t.Fatalf("seed %d: %v with the memo, %v without, of %x", seed, errA, errB, in)
			}
			if _, fatal := errors.AsType[CompressionError](errA); fatal {
				break
			}
			compareBlocks(t, &a, &b)
		}
	}
}

func compareBlocks(t *testing.T, a, b *Block) {
	t.Helper()
	if !bytes.Equal(a.Enc, b.Enc) || a.ListSize != b.ListSize || a.Fields != b.Fields || a.seen != b.seen {
		t.Fatalf("got %x (%d, %d), want %x (%d, %d)", a.Enc, a.ListSize, a.Fields, b.Enc, b.ListSize, b.Fields)
	}
	for id := range 3 {
		x, foundX := a.Watched(id)
		y, foundY := b.Watched(id)
		if foundX != foundY || x.Start != y.Start || x.End != y.End || x.Count != y.Count || !bytes.Equal(x.Value, y.Value) {
			t.Fatalf("watched %d: got %+v, want %+v", id, x, y)
		}
	}
}

// repeatedBlock is often the block before it, else a request of literals, indexed
// fields and insertions.
func repeatedBlock(rng *rand.Rand, last []byte) []byte {
	if last != nil && rng.IntN(3) > 0 {
		return last
	}
	var in []byte
	if rng.IntN(8) == 0 {
		in = appendInt(in, 0x20, 5, uint32(rng.IntN(300)))
	}
	in = append(in, 0x83, 0x86) // :method POST, :scheme http
	in = AppendField(in, ":path", "/a.B/"+string(rune('a'+rng.IntN(3))))
	for range rng.IntN(4) {
		switch rng.IntN(3) {
		case 0:
			in = append(in, 0x80|byte(62+rng.IntN(3))) // may not exist
		case 1:
			in = append(in, 0x40, 1, 'k'+byte(rng.IntN(3)), 1, 'v')
		default:
			in = AppendField(in, "grpc-timeout", string(rune('1'+rng.IntN(3)))+"S")
		}
	}
	return in
}

// A block that inserts is decoded again, for it inserts again.
func TestMemoKeepsNoInsertions(t *testing.T) {
	var out bytes.Buffer
	encoder := hpack.NewEncoder(&out)
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", "/x"}} {
		if err := encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			t.Fatal(err)
		}
	}
	d := newDecoder(NewWatchList(":path"), 4096, 1<<16)
	var b Block
	for i := range uint32(5) {
		if err := d.Transcode(&b, out.Bytes(), RequestBlock); err != nil {
			t.Fatal(err)
		}
		if d.table.inserted != i+1 {
			t.Fatalf("block %d: %d insertions", i+1, d.table.inserted)
		}
	}
}

// A block that was refused is refused again.
func TestMemoKeepsNoFaults(t *testing.T) {
	d := newDecoder(NewWatchList(":path"), 4096, 1<<16)
	var b Block
	in := AppendField([]byte{0x83, 0x86, 0x84}, "connection", "close")
	for range 3 {
		if err := d.Transcode(&b, in, RequestBlock); !errors.Is(err, MalformedConnectionField) {
			t.Fatalf("got %v", err)
		}
	}
}

// A block that changes the table's size changes it back after another block of
// another kind has changed it in between.
func TestMemoKeepsNoSizeUpdate(t *testing.T) {
	d := newDecoder(NewWatchList(":path"), 4096, 1<<16)
	var b Block
	transcode := func(in []byte, kind Kind) {
		t.Helper()
		if err := d.Transcode(&b, in, kind); err != nil {
			t.Fatal(err)
		}
	}
	request := append(appendInt(nil, 0x20, 5, 4096), 0x83, 0x86, 0x84)
	trailers := AppendField(appendInt(nil, 0x20, 5, 100), "x", "y")
	for range 3 {
		transcode(request, RequestBlock)
	}
	transcode(trailers, TrailerBlock)
	transcode(request, RequestBlock)
	if d.table.limit != 4096 {
		t.Errorf("limit: got %d, want 4096", d.table.limit)
	}
}
