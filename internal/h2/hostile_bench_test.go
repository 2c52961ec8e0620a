package h2

import (
	"bytes"
	"testing"

	"golang.org/x/net/http2/hpack"
)

// hostileBlocks are header blocks that cost the most for each of their octets,
// by what they have the decoder do.
func hostileBlocks() map[string][]byte {
	huffman := hpack.AppendHuffmanString(nil, string(bytes.Repeat([]byte{'"'}, 30<<10)))
	long := append([]byte{0x00, 1, 'a'}, appendInt(nil, 0x80, 7, uint32(len(huffman)))...)
	insert := append([]byte{0x40, 1, 'a'}, 0)
	return map[string][]byte{
		"static fields":  bytes.Repeat([]byte{0x99}, 32<<10),
		"small fields":   append([]byte{0x40, 1, 'a', 1, 'b'}, bytes.Repeat([]byte{0xbe}, 32<<10)...),
		"insertions":     bytes.Repeat(insert, 8<<10),
		"named by index": append(insert, bytes.Repeat([]byte{0x7e, 0}, 16<<10)...),
		"Huffman":        append(long, huffman...),
	}
}

// BenchmarkHostileBlocks shows that no header block costs more than some
// nanoseconds for each of its octets: who wants to keep us busy must send.
func BenchmarkHostileBlocks(b *testing.B) {
	for name, in := range hostileBlocks() {
		b.Run(name, func(b *testing.B) {
			d, block := newDecoder(testWatch(), 4096, 64<<10), new(Block)
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				err := d.Transcode(block, in, TrailerBlock)
				if asConnError(err) != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
