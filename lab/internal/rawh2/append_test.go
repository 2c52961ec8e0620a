package rawh2

import (
	"bytes"
	"slices"
	"testing"

	"golang.org/x/net/http2/hpack"
)

// Both blocks of a list decode to it, in the order in which they are sent; the
// later one does so at any time.
func TestBlocks(t *testing.T) {
	list := []string{":method", "POST", ":path", "/bench.Echo/Call", "te", "trailers"}
	decode := func(d *hpack.Decoder, block []byte) (got []string) {
		fields, err := d.DecodeFull(block)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fields {
			got = append(got, f.Name, f.Value)
		}
		return got
	}
	first, later := Blocks(list...)
	d := hpack.NewDecoder(4096, nil)
	for _, block := range [][]byte{first, later, later} {
		if got := decode(d, block); !slices.Equal(got, list) {
			t.Errorf("block %x is %q", block, got)
		}
	}
	if !slices.Equal(decode(hpack.NewDecoder(4096, nil), later), list) {
		t.Error("the later block depends on the first one")
	}
}

func TestBlockMemo(t *testing.T) {
	var m BlockMemo
	good, again := Blocks("grpc-status", "0", "x", "y")
	bad, _ := Blocks("grpc-status", "8")
	for range 3 {
		for _, block := range [][]byte{good, again} {
			if !m.Holds(block, "grpc-status", "0") {
				t.Errorf("block %x: wanted field not found", block)
			}
		}
		if m.Holds(bad, "grpc-status", "0") || m.Holds([]byte{0xff}, "grpc-status", "0") || m.Holds(nil, "grpc-status", "0") {
			t.Error("a block without the wanted field was accepted")
		}
	}
	for i := range byte(20) {
		other, _ := Blocks("grpc-status", "0", "n", string('a'+i))
		m.Holds(other, "grpc-status", "0")
	}
	if !m.Holds(good, "grpc-status", "0") {
		t.Error("a forgotten block was not decoded again")
	}
}

func TestMessage(t *testing.T) {
	for _, size := range []int{MinMessage, 17, MaxMessage} {
		m := AppendMessage(nil, size, 7, 3, 258)
		if len(m) != prefixBytes+size || len(m) > maxPayload || Answers(m) != 7 {
			t.Errorf("size %d: %d bytes that want %d answers", size, len(m), Answers(m))
		}
		if !Whole(m) || Whole(m[:len(m)-1]) || Whole(m[:4]) || Whole(nil) {
			t.Errorf("size %d: whole and cut messages are confused", size)
		}
		if bytes.Equal(m, AppendMessage(nil, size, 7, 3, 259)) || bytes.Equal(m, AppendMessage(nil, size, 7, 4, 258)) {
			t.Errorf("size %d: two calls have the same message", size)
		}
	}
	if Answers(nil) != 1 {
		t.Error("what is no message wants one answer")
	}
}
