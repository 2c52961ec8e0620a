package h2

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"

	"golang.org/x/net/http2/hpack"
)

// huffmanCode decodes the code of RFC 7541, appendix B.
//
// The code itself comes from hpack at the start of the program; only the loop
// is ours. Values that change on every call must be decoded to be checked, and
// hpack.HuffmanDecode makes a request with a new grpc-timeout cost 188 ns and
// an allocation in place of 132 ns and none, one with a traceparent as well
// 530 ns in place of 335 (BenchmarkTranscodeRequestTimeout and the one behind it).
//
// Shape: short is indexed by the next 8 bits and has all codes of up to 8 bits, which are
// letters, digits and the usual punctuation. The code is canonical: the codes of one
// length are consecutive numbers, so that a row of long finds any of its symbols by a
// subtraction.
type huffmanCode struct {
	short [256]struct{ symbol, length uint8 }
	long  []huffmanRow
}

// huffmanRow holds the codes of one length above 8.
type huffmanRow struct {
	length  uint
	first   uint32 // the smallest code
	symbols []byte // by their distance from it
}

// huffman is never written after the program has started.
var huffman = buildHuffman()

func buildHuffman() *huffmanCode {
	h := new(huffmanCode)
	var rows [31]huffmanRow
	for s := range 256 {
		length, code := huffmanOf(byte(s))
		if length <= 8 {
			for i := range 1 << (8 - length) {
				e := &h.short[int(code)<<(8-length)+i]
				e.symbol, e.length = byte(s), uint8(length)
			}
			continue
		}
		// Within a length the codes grow with the symbols.
		row := &rows[length]
		if row.symbols == nil {
			row.length, row.first = length, code
		}
		row.symbols = append(row.symbols, byte(s))
	}
	for _, row := range rows {
		if row.symbols != nil {
			h.long = append(h.long, row)
		}
	}
	return h
}

// huffmanOf returns the code of a symbol and its length in bits.
func huffmanOf(s byte) (length uint, code uint32) {
	text := string([]byte{s})
	length = uint(hpack.HuffmanEncodeLength(strings.Repeat(text, 8))) // octets for 8 are bits for 1
	var padded [4]byte
	hpack.AppendHuffmanString(padded[:0], text)
	return length, binary.BigEndian.Uint32(padded[:]) >> (32 - length)
}

// appendDecoded appends the text of a Huffman string.
//
// Errors: CompressionBadHuffman for EOS within the string, and for padding
// that is longer than 7 bits or has a zero (RFC 7541, 5.2).
func (h *huffmanCode) appendDecoded(dst, src []byte) ([]byte, CompressionError) {
	dst = slices.Grow(dst, len(src)*8/5) // the shortest code has 5 bits
	var window uint64                    // the next bits, left-aligned
	var n uint                           // how many they are
	for {
		window, n, src = refill(window, n, src)
		for n >= 8 {
			e := h.short[window>>56]
			if e.length == 0 {
				break
			}
			dst = append(dst, e.symbol)
			window <<= e.length & 63 // the mask only spares a comparison
			n -= uint(e.length)
		}
		if n < 30 && len(src) > 0 {
			continue
		}
		symbol, length := h.code(uint32(window >> 32))
		if length > n {
			break
		}
		dst = append(dst, symbol)
		window <<= length & 63
		n -= length
	}
	if n > 7 || bits.OnesCount64(window) != int(n) {
		return dst, CompressionBadHuffman
	}
	return dst, 0
}

// refill fills the window to 56 bits at least, or with all that is left. Behind
// those n bits the window may hold a part of the next octet, which the next
// refill puts in the same place again.
func refill(window uint64, n uint, src []byte) (uint64, uint, []byte) {
	if len(src) >= 8 {
		window |= binary.BigEndian.Uint64(src) >> (n & 63)
		return window, n | 56, src[(63-n)>>3:]
	}
	for n <= 56 && len(src) > 0 {
		window |= uint64(src[0]) << (56 - n)
		n, src = n+8, src[1:]
	}
	return window, n, src
}

// code finds the code at the top of window. EOS, which is not a symbol, has a length
// beyond every window.
func (h *huffmanCode) code(window uint32) (symbol uint8, length uint) {
	if e := h.short[window>>24]; e.length != 0 {
		return e.symbol, uint(e.length)
	}
	for i := range h.long {
		row := &h.long[i]
		if distance := window>>(32-row.length) - row.first; distance < uint32(len(row.symbols)) {
			return row.symbols[distance], row.length
		}
	}
	return 0, 64
}
