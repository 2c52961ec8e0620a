package h2

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"

	"github.com/cabrank/cabrank/internal/testkit"
)

func TestAppendField(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{":status", "200", "88"},
		{":status", "500", "8e"},
		{":status", "503", "08 03 353033"},
		{":method", "POST", "83"},
		{":path", "/x", "04 02 2f78"},
		{":authority", "", "81"},
		{"content-type", "", "9f"},
		{"content-type", "a", "0f10 01 61"},
		{"accept-encoding", "gzip, deflate", "90"},
		{"accept-encoding", "", "0f01 00"},
		{"www-authenticate", "", "bd"},
		{"grpc-status", "0", "00 0b 677270632d737461747573 01 30"},
		{"a", strings.Repeat("b", 200), "00 01 61 7f49" + strings.Repeat("62", 200)},
	} {
		want := unhex(t, "ff"+tt.want)
		if got := AppendField([]byte{0xff}, tt.name, tt.value); !bytes.Equal(got, want) {
			t.Errorf("AppendField(%q, %q) = %x; want %x", tt.name, tt.value, got, want)
		}
		if got := AppendFieldBytes([]byte{0xff}, tt.name, []byte(tt.value)); !bytes.Equal(got, want) {
			t.Errorf("AppendFieldBytes(%q, %q) = %x; want %x", tt.name, tt.value, got, want)
		}
	}
}

// RFC 7541, C.1.
func TestAppendInt(t *testing.T) {
	for _, tt := range []struct {
		prefix uint8
		v      uint32
		want   string
	}{
		{5, 10, "0a"},
		{5, 1337, "1f9a0a"},
		{7, 42, "2a"},
		{7, 126, "7e"},
		{7, 127, "7f00"},
		{4, 14, "0e"},
		{4, 15, "0f00"},
		{7, 127 + 127, "7f7f"},
		{7, 127 + 128, "7f8001"},
		{7, 127 + 1<<28 - 1, "7fffffff7f"},
	} {
		got := appendInt(nil, 0, tt.prefix, tt.v)
		testkit.Want(t, bytes.Equal(got, unhex(t, tt.want)), "%d with %d bits is %x; want %s", tt.v, tt.prefix, got, tt.want)
		if v, next, err := readInt(got, 0, tt.prefix); v != tt.v || next != len(got) || err != 0 {
			t.Errorf("%x with %d bits was read as %d, %v", got, tt.prefix, v, err)
		}
	}
}

func TestDecodeFields(t *testing.T) {
	block := AppendTableSizeUpdateZero(nil)
	block = AppendField(block, ":status", "200")
	block = AppendField(block, "x", "y")
	block = append(block, unhex(t, "1001 6101 62")...)
	want := []Field{{Name: ":status", Value: "200"}, {Name: "x", Value: "y"}, {Name: "a", Value: "b", Never: true}}
	got, err := DecodeFields(block)
	testkit.Want(t, err == nil && slices.Equal(got, want), "DecodeFields(%x) = %v, %v; want %v", block, got, err, want)
	for _, in := range []string{"be", "82 20 be", "40", "3f01"} {
		if got, err := DecodeFields(unhex(t, in)); err == nil {
			t.Errorf("DecodeFields(%s) = %v", in, got)
		}
	}
}

// Our own fields pass our own decoder as they are, on any connection (R12).
func TestAppendFieldIsStateless(t *testing.T) {
	block := AppendTableSizeUpdateZero(nil)
	block = AppendField(block, ":status", "503")
	block = AppendField(block, "content-type", "application/grpc")
	block = AppendField(block, "grpc-message", "cabrank: queue full")
	d, b := newDecoder(testWatch(), 4096, 16<<10), new(Block)
	err := d.Transcode(b, block, ResponseBlock)
	testkit.Want(t, err == nil && bytes.Equal(b.Enc, block[1:]), "%x became %x, %v", block[1:], b.Enc, err)
	testkit.Is(t, d.Transcode(b, []byte{0xbe}, ResponseBlock), CompressionBadIndex, "something was put into the table")
}

func TestAppendFieldAllocatesNothing(t *testing.T) {
	dst, value := make([]byte, 0, 128), []byte("10.0.0.1")
	allocs := testing.AllocsPerRun(100, func() {
		dst = AppendField(dst[:0], ":status", "200")
		dst = AppendField(dst, "grpc-status", "14")
		dst = AppendFieldBytes(dst, "x-forwarded-for", value)
	})
	testkit.Want(t, allocs == 0, "%v allocations", allocs)
}

// Fields are read one by one as hpack reads them all, whichever way they are coded.
func TestNextField(t *testing.T) {
	var coded bytes.Buffer
	enc := hpack.NewEncoder(&coded)
	for _, f := range []hpack.HeaderField{
		{Name: ":status", Value: "200"}, {Name: ":path", Value: "/www.example.com"}, {Name: "x-long", Value: strings.Repeat("long ", 100) + "end"},
		{Name: "x-secret", Value: "\x01\xff", Sensitive: true}, {Name: "x-empty"}, {Name: "content-type", Value: "application/grpc"},
	} {
		testkit.Must(t, enc.WriteField(f))
	}
	var b Block
	err := newDecoder(NewWatchList(":status"), 4096, 16<<10).Transcode(&b, coded.Bytes(), ResponseBlock)
	testkit.Need(t, err == nil || b.Fields != 0, "%v", err)
	want, err := DecodeFields(b.Enc)
	testkit.Must(t, err)
	rest := b.Enc
	for _, f := range want {
		var name, value []byte
		if name, value, rest = NextField(rest); string(name) != f.Name || string(value) != f.Value {
			t.Errorf("read %q: %q, want %q: %q", name, value, f.Name, f.Value)
		}
	}
	testkit.Want(t, len(want) == 6 && len(rest) == 0, "%d fields, and %d bytes behind them", len(want), len(rest))
}

// Whatever is read in place of a block comes to its end.
func FuzzNextField(f *testing.F) {
	f.Add(AppendField(nil, "name", "value"))
	f.Add([]byte{0x00, 0x85, 0xff, 0xff})
	f.Add([]byte{0x0f, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(_ *testing.T, in []byte) {
		for len(in) > 0 {
			before := len(in)
			if _, _, in = NextField(in); len(in) >= before {
				panic("nothing was read")
			}
		}
	})
}
