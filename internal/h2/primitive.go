package h2

// wireString is a string literal as received (RFC 7541, 5.2).
type wireString struct {
	octets  []byte
	huffman bool
}

// append appends s, whose text is plain. A Huffman string that is longer than its text is
// replaced by the text: this bounds the size of a table entry.
func (s wireString) append(dst, plain []byte, unencoded bool) []byte {
	if s.huffman && !unencoded && len(s.octets) <= len(plain) {
		dst = appendInt(dst, 0x80, 7, uint32(len(s.octets)))
		return append(dst, s.octets...)
	}
	dst = appendInt(dst, 0, 7, uint32(len(plain)))
	return append(dst, plain...)
}

// readString reads a string literal (RFC 7541, 5.2).
func readString(in []byte, pos int) (s wireString, next int, err CompressionError) {
	if pos >= len(in) {
		return s, pos, CompressionTruncated
	}
	s.huffman = in[pos] >= 0x80
	n, pos, err := readInt(in, pos, 7)
	if err != 0 {
		return s, pos, err
	}
	if int(n) > len(in)-pos {
		return s, pos, CompressionTruncated
	}
	next = pos + int(n)
	s.octets = in[pos:next]
	return s, next, 0
}

// readInt reads an integer with a prefix of that many bits (RFC 7541, 5.1).
func readInt(in []byte, pos int, prefix uint8) (uint32, int, CompressionError) {
	top := uint32(1)<<prefix - 1
	v := uint32(in[pos]) & top
	if v < top {
		return v, pos + 1, 0
	}
	return readLongInt(in, pos+1, top)
}

// readLongInt reads the octets after a full prefix: at most four, more than any index or
// length within our limits needs.
func readLongInt(in []byte, pos int, v uint32) (uint32, int, CompressionError) {
	for shift := 0; shift < 28; shift += 7 {
		if pos >= len(in) {
			return 0, pos, CompressionTruncated
		}
		c := in[pos]
		pos++
		v += uint32(c&0x7f) << shift
		if c < 0x80 {
			return v, pos, 0
		}
	}
	return 0, pos, CompressionIntOverflow
}

// appendInt appends v with a prefix of that many bits, below the given flags
// (RFC 7541, 5.1).
func appendInt(dst []byte, flags byte, prefix uint8, v uint32) []byte {
	top := uint32(1)<<prefix - 1
	if v < top {
		return append(dst, flags|byte(v))
	}
	dst = append(dst, flags|byte(top))
	for v -= top; v >= 0x80; v >>= 7 {
		dst = append(dst, byte(v)|0x80)
	}
	return append(dst, byte(v))
}
