package h2

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"
)

func BenchmarkHuffman(b *testing.B) {
	for _, text := range []string{"4999000u", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", strings.Repeat("~{\x80\xff", 10)} {
		coded := hpack.AppendHuffmanString(nil, text)
		var plain []byte
		b.Run("ours", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				plain, _ = huffman.appendDecoded(plain[:0], coded)
			}
		})
		b.Run("hpack", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				hpack.HuffmanDecode(io.Discard, coded)
			}
		})
	}
}

func FuzzHuffman(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte("www.example.com"))
	for s := range 256 {
		f.Add([]byte{byte(s)})
		f.Add(hpack.AppendHuffmanString(nil, string([]byte{byte(s), 'a', byte(s)})))
	}
	f.Add([]byte{0xff})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0xff, 0xff, 0xff, 0xfc})
	f.Add([]byte{0x1f, 0xff})
	f.Fuzz(func(t *testing.T, in []byte) {
		want, err := hpack.HuffmanDecodeToString(in)
		got, failed := huffman.appendDecoded(nil, in)
		if (err != nil) != (failed != 0) || err == nil && string(got) != want {
			t.Errorf("decoding %x: %q, %v; hpack: %q, %v", in, got, failed, want, err)
		}
		coded := hpack.AppendHuffmanString(nil, string(in))
		if got, failed := huffman.appendDecoded(nil, coded); failed != 0 || !bytes.Equal(got, in) {
			t.Errorf("decoding %x: %q, %v; want %q", coded, got, failed, in)
		}
	})
}
