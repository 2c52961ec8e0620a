package h2

import "golang.org/x/net/http2/hpack"

// AppendField appends one field in its stateless form: an index if the static
// table has the field, else a literal without indexing.
//
// Shape: strings are not Huffman coded: on the short path to a worker octets are cheaper
// than coding on both sides.
// Errors: name and value are not checked; the caller hands in a lower-case
// name and a value without NUL, CR and LF.
// Source: RFC 7541, 6.1 and 6.2.2; R12.
func AppendField(dst []byte, name, value string) []byte {
	return appendField(dst, name, value)
}

// AppendFieldBytes is AppendField for a value in bytes.
func AppendFieldBytes(dst []byte, name string, value []byte) []byte {
	return appendField(dst, name, value)
}

func appendField[V string | []byte](dst []byte, name string, value V) []byte {
	index := int(staticIndex[name])
	if index == 0 {
		dst = appendInt(append(dst, 0), 0, 7, uint32(len(name)))
		dst = append(dst, name...)
	} else {
		for i := index; i < len(staticTable) && staticTable[i].name == name; i++ {
			if staticTable[i].value == string(value) {
				return append(dst, 0x80|byte(i))
			}
		}
		dst = appendInt(dst, 0, 4, uint32(index))
	}
	dst = appendInt(dst, 0, 7, uint32(len(value)))
	return append(dst, value...)
}

// AppendTableSizeUpdateZero appends the table size update to zero with which our first
// block on every connection begins: after that the peer sees only stateless blocks
// (RFC 7541, 6.3; R12).
func AppendTableSizeUpdateZero(dst []byte) []byte { return append(dst, 0x20) }

// Field is one field of a decoded header block.
type Field struct {
	Name, Value string
	Never       bool // never indexed: a secret (RFC 7541, 7.1.3)
}

// DecodeFields decodes a stateless block into a list, with or without the table size
// update to zero at its beginning. It allocates and is meant for tests and for the few
// blocks that other code reads.
//
// Errors: those of hpack, for instance for an index into a dynamic table.
func DecodeFields(in []byte) ([]Field, error) {
	decoded, err := hpack.NewDecoder(0, nil).DecodeFull(in)
	if err != nil {
		return nil, err
	}
	fields := make([]Field, len(decoded))
	for i, f := range decoded {
		fields[i] = Field{Name: f.Name, Value: f.Value, Never: f.Sensitive}
	}
	return fields, nil
}

// NextField returns the first field of a block from a Block or AppendField, and the
// fields after it.
//
// Errors: none; any other block ends at the first field that NextField cannot read.
func NextField(in []byte) (name, value, rest []byte) {
	if len(in) == 0 {
		return nil, nil, nil
	}
	if in[0] >= 0x80 {
		index, next, err := readInt(in, 0, 7)
		if err != 0 || index == 0 || index >= firstDynamic {
			return nil, nil, nil
		}
		row := &staticTable[index]
		return []byte(row.name), []byte(row.value), in[next:]
	}
	index, next, err := readInt(in, 0, 4)
	switch {
	case err != 0 || in[0] >= 0x20 || index >= firstDynamic:
		return nil, nil, nil
	case index != 0:
		name = []byte(staticTable[index].name)
	default:
		name, next = readPlain(in, next)
	}
	value, next = readPlain(in, next)
	return name, value, in[next:]
}

// readPlain reads a string literal and decodes it; a truncated one is empty and extends
// to the end.
func readPlain(in []byte, pos int) (plain []byte, next int) {
	s, next, err := readString(in, pos)
	if err != 0 {
		return nil, len(in)
	}
	if s.huffman {
		if plain, err = huffman.appendDecoded(nil, s.octets); err != 0 {
			return nil, len(in)
		}
		return plain, next
	}
	return s.octets, next
}
