package h2

import "iter"

// Fields is a header list of stateless fields (AppendField).
type Fields []byte

// Add returns the list with one field more: a name in lower case, and a value
// without NUL, CR and LF.
func (f Fields) Add(name, value string) Fields { return AppendField(f, name, value) }

// All goes through the fields.
func (f Fields) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for rest := []byte(f); len(rest) > 0; {
			var name, value string
			name, value, rest = nextField(rest)
			if !yield(name, value) {
				return
			}
		}
	}
}

// nextField is NextField without a copy of what stands in the static table.
func nextField(in []byte) (name, value string, rest []byte) {
	if index, next, err := readInt(in, 0, 7); in[0] >= 0x80 && err == 0 && 0 < index && index < firstDynamic {
		return staticTable[index].name, staticTable[index].value, in[next:]
	}
	if index, next, err := readInt(in, 0, 4); in[0] < 0x20 && err == 0 && 0 < index && index < firstDynamic {
		v, next := readPlain(in, next)
		return staticTable[index].name, string(v), in[next:]
	}
	n, v, rest := NextField(in)
	return string(n), string(v), rest
}
