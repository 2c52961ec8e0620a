package h2

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/net/http2/hpack"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Every name of the longest list is found, in any coding, and only those that are
// there.
func TestWatchListHoldsSixtyFour(t *testing.T) {
	var names []string
	for i := range maxWatched - 3 {
		names = append(names, "x-"+strconv.Itoa(i))
	}
	d, b := newDecoder(NewWatchList(names...), 4096, 64<<10), new(Block)
	list := grpcRequest("")
	for i := 1; i < len(names); i += 2 {
		list = append(list, hpack.HeaderField{Name: names[i], Value: "value of " + names[i]})
	}
	for round, in := range encoderBlocks(list, list, list) { // literals, indexed, and from the memo
		testkit.Must(t, d.Transcode(b, in, RequestBlock))
		for i, name := range names {
			w, found := b.Watched(i)
			if odd := i%2 == 1; found != odd || odd && string(w.Value) != "value of "+name {
				t.Errorf("round %d: %s is %q, %v", round, name, w.Value, found)
			}
		}
	}
}

// A decoder whose owner looks for other names finds in all that follows what one
// finds that has looked for them from the start, whatever is in the dynamic table.
func TestWatchFollows(t *testing.T) {
	lists := []*WatchList{
		testWatch().Base64("-bin"), wideWatch().Base64("-bin"), NewWatchList(), NewWatchList("k1", "grpc-timeout", "x-bin").Base64("-bin"),
	}
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 2))
		follower := newDecoder(lists[0], 4096, 4000)
		var steady []*Decoder
		for _, list := range lists {
			steady = append(steady, newDecoder(list, 4096, 4000))
		}
		var buf writer
		enc, at := hpack.NewEncoder(&buf), 0
		for range 60 {
			if rng.IntN(4) == 0 {
				at = rng.IntN(len(lists))
				follower.Watch(lists[at])
			}
			buf = buf[:0]
			writeAtRandom(enc, rng)
			var got, want Block
			err := follower.Transcode(&got, buf, RequestBlock)
			for i, d := range steady {
				var other Block
				if wanted := d.Transcode(&other, buf, RequestBlock); i == at {
					want = other
					testkit.Need(t, errors.Is(err, wanted), "seed %d: %v, want %v", seed, err, wanted)
				}
			}
			wantSame(t, &got, &want)
			checkBounds(t, &follower.table, 4096)
		}
	}
}

type writer []byte

func (w *writer) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}

// writeAtRandom writes a request whose fields are often those of the one before.
func writeAtRandom(enc *hpack.Encoder, rng *rand.Rand) {
	if rng.IntN(10) == 0 {
		enc.SetMaxDynamicTableSize(uint32(rng.IntN(4097)))
	}
	list := grpcRequest(strconv.Itoa(rng.IntN(3)) + "S")
	for range rng.IntN(5) {
		list = append(list, hpack.HeaderField{
			Name:      []string{"k1", "x-7", "x-bin", "custom-key", "cache-control", "user-agent"}[rng.IntN(6)],
			Value:     []string{"YQ", "YQ, YWI=", "no-cache", "\xff\xfe", "", "a long text that is shorter by Huffman"}[rng.IntN(6)],
			Sensitive: rng.IntN(8) == 0,
		})
	}
	for _, f := range list {
		_ = enc.WriteField(f)
	}
}

// wantSame compares blocks that may differ in the coding of their fields.
func wantSame(t *testing.T, got, want *Block) {
	t.Helper()
	a, b := readStateless(t, got.Enc), readStateless(t, want.Enc)
	testkit.Need(t, slices.Equal(a, b) && got.ListSize == want.ListSize && got.Fields == want.Fields && got.seen == want.seen,
		"got %v (%d, %d, %b), want %v (%d, %d, %b)", a, got.ListSize, got.Fields, got.seen, b, want.ListSize, want.Fields, want.seen)
	for id := range maxWatched {
		x, _ := got.Watched(id)
		y, _ := want.Watched(id)
		testkit.Need(t, string(x.Value) == string(y.Value) && x.Count == y.Count, "watched %d: got %q, want %q", id, x.Value, y.Value)
		alone := readStateless(t, got.Enc[x.Start:x.End:x.End])
		if x.Count > 0 && (len(alone) != 1 || alone[0].Value != string(x.Value)) {
			t.Fatalf("watched %d stands at %d to %d as %v", id, x.Start, x.End, alone)
		}
	}
}

// Looking for other names costs nothing by itself, and nothing is allocated by the
// blocks that follow the next one.
func TestWatchAllocatesOnce(t *testing.T) {
	lists := [2]*WatchList{testWatch(), wideWatch()}
	d, b := newDecoder(lists[0], 4096, 64<<10), new(Block)
	blocks := encoderBlocks(grpcRequest(""), grpcRequest(""))
	transcode := func(in []byte) {
		testkit.Must(t, d.Transcode(b, in, RequestBlock))
	}
	transcode(blocks[0])
	for i := range 4 {
		d.Watch(lists[i%2])
		for range 3 { // rewrites the table, is seen, is kept
			transcode(blocks[1])
		}
		if n := testing.AllocsPerRun(100, func() { transcode(blocks[1]) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}
