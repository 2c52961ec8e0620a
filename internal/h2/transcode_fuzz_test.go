package h2

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"

	"github.com/cabrank/cabrank/internal/testkit"
)

const fuzzMaxList = 2000

// fuzzInput joins the blocks of one connection, each behind its length.
func fuzzInput(blocks ...[]byte) (in []byte) {
	for _, block := range blocks {
		in = binary.BigEndian.AppendUint16(in, uint16(len(block)))
		in = append(in, block...)
	}
	return in
}

// nextBlock takes a block from an input; the last may be shorter than it says.
func nextBlock(in []byte) (block, rest []byte) {
	if len(in) < 2 {
		return nil, nil
	}
	n := min(int(binary.BigEndian.Uint16(in)), len(in)-2)
	return in[2 : 2+n], in[2+n:]
}

// FuzzTranscode feeds the blocks of a connection to the transcoder and to
// hpack, and compares the fields with those that hpack reads from the output.
func FuzzTranscode(f *testing.F) {
	for _, example := range specExamples {
		var blocks [][]byte
		for _, s := range example.steps {
			blocks = append(blocks, unhex(f, s.in))
		}
		f.Add(uint8(example.kind), uint16(example.tableSize), fuzzInput(blocks...))
	}
	for _, tt := range messageRules {
		f.Add(uint8(tt.kind), uint16(4096), fuzzInput(encoderBlocks(tt.fields, tt.fields)...))
	}
	f.Add(uint8(0), uint16(4096), fuzzInput(encoderBlocks(grpcRequest("1S"), grpcRequest("2S"), grpcRequest("2S"))...))
	big := append(grpcRequest(""), pairs("big", strings.Repeat("b", 2000))...)
	f.Add(uint8(0), uint16(4096), fuzzInput(encoderBlocks(big, grpcRequest(""), big)...))
	for _, in := range []string{"80", "be", "ff", "ff80 8080 8000", "4001 6182 1fff", "20 3fe1 1f83", "8320", "1001 6101 62 7e00 be"} {
		f.Add(uint8(2), uint16(100), fuzzInput(unhex(f, in), unhex(f, in)))
	}
	binary := func(value string) []hpack.HeaderField { return append(grpcRequest("1S"), pairs("x-bin", value)...) }
	f.Add(uint8(0), uint16(4096), fuzzInput(encoderBlocks(binary("YQ"), binary("YQ==, YWI,"), binary("YQ==, YWI,"), binary("YQ,Y"))...))
	f.Add(uint8(2), uint16(4096), fuzzInput(encoderBlocks(pairs("x-bin", "YQ,YQ ", "y-bin", strings.Repeat(",", 300)), pairs("x-bin", "YQ,YQ "))...))
	at := func(authority, host string) []hpack.HeaderField {
		return pairs(":method", "GET", ":scheme", "http", ":path", "/", ":authority", authority, "host", host)
	}
	f.Add(uint8(0), uint16(4096), fuzzInput(encoderBlocks(at("a:80", "A"), at("a", "a:443"), at("a:80", "a:80:80"), at("", "b"), at("[::1]", "[::1]:80"))...))
	lists := [2]*WatchList{testWatch().Base64("-bin"), wideWatch().Base64("-bin")}
	f.Fuzz(func(t *testing.T, kind uint8, tableSize uint16, in []byte) {
		peer := &fuzzPeer{
			kind: Kind(kind % 3),
			ref:  hpack.NewDecoder(uint32(tableSize%4097), nil),
			ours: newDecoder(lists[0], uint32(tableSize%4097), fuzzMaxList), block: &Block{},
		}
		for len(in) > 0 {
			var block []byte
			block, in = nextBlock(in)
			if len(block)%4 == 3 { // now and then the owner looks for other names
				peer.turns++
				peer.ours.Watch(lists[peer.turns%2])
			}
			if !peer.step(t, block) {
				return
			}
			checkBounds(t, &peer.ours.table, uint32(tableSize%4097))
		}
	})
}

// fuzzPeer is one connection as both decoders see it.
type fuzzPeer struct {
	kind  Kind
	ref   *hpack.Decoder
	ours  *Decoder
	block *Block // scratch of the shard
	turns int    // from one watch list to the other
}

// step compares one block and reports whether the connection goes on.
func (p *fuzzPeer) step(t *testing.T, in []byte) bool {
	t.Helper()
	want, refErr := p.decode(in)
	err := p.ours.Transcode(p.block, in, p.kind)
	if failed, ok := errors.AsType[CompressionError](err); ok {
		testkit.Want(t, sameVerdict(failed, refErr), "%x: %v; hpack: %q, %v", in, err, want, refErr)
		return false
	}
	if refErr != nil {
		t.Errorf("%x: %v; hpack: %v", in, err, refErr)
		return false
	}
	p.compare(t, in, want, err)
	return true
}

// decode has hpack read a block. It refuses the second of two size updates,
// which RFC 7541, 4.2 asks encoders to send, so that each gets a block of its
// own.
func (p *fuzzPeer) decode(in []byte) ([]hpack.HeaderField, error) {
	for n := leadingUpdate(in); n > 0; n = leadingUpdate(in) {
		if _, err := p.ref.DecodeFull(in[:n]); err != nil {
			return nil, err
		}
		in = in[n:]
	}
	return p.ref.DecodeFull(in)
}

// leadingUpdate returns the length of the size update that a block begins with.
func leadingUpdate(in []byte) int {
	if len(in) == 0 || in[0]&0xe0 != 0x20 {
		return 0
	}
	if in[0] != 0x3f {
		return 1
	}
	for i, c := range in[1:] {
		if c < 0x80 {
			return i + 2
		}
	}
	return 0 // truncated
}

// sameVerdict reports whether hpack refuses a block for the same reason as we
// do. The allowed differences: we are stricter about size updates behind a
// field and the length of integers, as RFC 7541, 4.2 and 5.1 have it, and bound
// what is copied out of the table and the number of updates; hpack looks at the
// place of a size update before it has seen the whole of it, and at the Huffman
// coding of a name only when it has seen the whole field, whatever it finds
// there.
func sameVerdict(ours CompressionError, ref error) bool {
	switch ours { //nolint:exhaustive // the others are below
	case CompressionLateUpdate, CompressionIntOverflow, CompressionBomb, CompressionUpdates:
		return true
	}
	if ref == nil {
		return false
	}
	truncated := strings.Contains(ref.Error(), "truncated headers")
	switch ours { //nolint:exhaustive // the others are above
	case CompressionTruncated:
		return truncated || strings.Contains(ref.Error(), "MUST occur at the beginning")
	case CompressionBadHuffman:
		return errors.Is(ref, hpack.ErrInvalidHuffman) || truncated || strings.Contains(ref.Error(), "varint integer overflow")
	case CompressionTableSize:
		return strings.Contains(ref.Error(), "update too large")
	case CompressionBadIndex:
		decoding, _ := errors.AsType[hpack.DecodingError](ref)
		_, index := errors.AsType[hpack.InvalidIndexError](decoding.Err)
		return index
	}
	return false
}

func (p *fuzzPeer) compare(t *testing.T, in []byte, want []hpack.HeaderField, err error) {
	t.Helper()
	wantFault := testkit.FieldFault(testkit.Message(p.kind), want, true)
	want = splitBinary(want)
	size := 0
	for _, f := range want {
		size += int(f.Size())
	}
	if wantFault == "" && size <= fuzzMaxList && p.kind == RequestBlock && testkit.HostDiffers(want) {
		wantFault = "host"
	}
	testkit.Want(t, p.block.ListSize == size && p.block.Fields == len(want),
		"%x: %d fields of %d octets; want %d of %d", in, p.block.Fields, p.block.ListSize, len(want), size)
	fault, _ := errors.AsType[MalformedError](err)
	testkit.Want(t, (fault != 0) == (wantFault != ""), "%q: %v; want %q", list(want), err, wantFault)
	testkit.Want(t, errors.Is(err, ErrListTooLarge) == (size > fuzzMaxList && wantFault == ""), "%d octets: %v", size, err)
	got := list(readStateless(t, p.block.Enc))
	expect := list(want)
	if size > fuzzMaxList {
		expect = expect[:min(len(got), len(expect))]
	}
	testkit.Want(t, slices.Equal(got, expect), "%x became %q; want %q", in, got, expect)
	p.compareWatched(t, want[:len(expect)])
}

// compareWatched looks for every watched name in the list and in the block.
func (p *fuzzPeer) compareWatched(t *testing.T, fields []hpack.HeaderField) {
	t.Helper()
	for name, known := range p.ours.watch.names {
		if known.watch == 0 {
			continue
		}
		count, last := 0, ""
		for _, f := range fields {
			if f.Name == name {
				count, last = count+1, f.Value
			}
		}
		w, ok := p.block.Watched(int(known.watch - 1))
		testkit.Want(t, ok == (count > 0) && w.Count == count && string(w.Value) == last,
			"%s is %q, %d times, %v; want %q, %d", name, w.Value, w.Count, ok, last, count)
		if !ok {
			continue
		}
		alone := readStateless(t, bytes.Clone(p.block.Enc[w.Start:w.End]))
		testkit.Want(t, len(alone) == 1 && alone[0].Name == name && alone[0].Value == last,
			"%s stands at %d to %d as %q", name, w.Start, w.End, list(alone))
	}
}

// splitBinary puts a field for each value in the place of those that gRPC has joined.
// One that holds anything but base64 is left as it is.
func splitBinary(fields []hpack.HeaderField) (split []hpack.HeaderField) {
	for _, f := range fields {
		values := []string{f.Value}
		if strings.HasSuffix(f.Name, "-bin") && testkit.RegularFault(f, true) == "" {
			values = strings.Split(f.Value, ",")
		}
		for _, value := range values {
			if len(values) > 1 {
				value = strings.Trim(value, " \t")
			}
			split = append(split, hpack.HeaderField{Name: f.Name, Value: value, Sensitive: f.Sensitive})
		}
	}
	return split
}
