package schema

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// What a message takes while it is turned into JSON, or back, in bytes: itself, and each
// value in it, beside what its texts take.
const (
	messageBytes = 256
	valueBytes   = 96
)

// small is from which length on it is worth while to look before.
const small = 256

// WeighRequest is how many bytes AppendRequest takes beyond what it appends, at most.
func (m *Method) WeighRequest(value []byte) (bytes int) {
	if len(value) < small {
		return 0
	}
	quoted := false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '{':
			bytes += messageBytes
		case c == ',' || c == '[' || c == ':':
			bytes += valueBytes
		}
	}
	return bytes + len(value)
}

// WeighAnswer is how many bytes AppendAnswer takes, at most: the message while it is read,
// and its JSON, in which fields without a value stand, too.
func (m *Method) WeighAnswer(encoded []byte) (message, text int) {
	if len(encoded) < small {
		return 0, 2 * small
	}
	w := weight{types: m.types}
	w.add(m.output, encoded, mostDepth)
	return w.message, w.text
}

// weight adds up messages. What is malformed ends it: AppendAnswer says so.
type weight struct {
	types         *types
	message, text int
}

func (w *weight) add(m protoreflect.MessageDescriptor, b []byte, depth int) {
	w.message += messageBytes
	w.text += w.types.empty(m)
	if depth == 0 {
		return
	}
	var url, value []byte
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		size := protowire.ConsumeFieldValue(number, kind, b[n:])
		if size < 0 {
			return
		}
		content := b[n : n+size]
		b = b[n+size:]
		switch kind { //nolint:exhaustive // the others are their value
		case protowire.BytesType:
			content, _ = protowire.ConsumeBytes(content)
		case protowire.StartGroupType:
			content, _ = protowire.ConsumeGroup(number, content)
		}
		w.message += valueBytes
		if number == 1 {
			url = content
		} else {
			value = content
		}
		if f := m.Fields().ByNumber(number); f != nil {
			w.field(f, kind, content, depth)
		} else {
			w.message += size
		}
	}
	if m.FullName() == "google.protobuf.Any" {
		if inner, err := w.types.FindMessageByURL(string(url)); err == nil {
			w.add(inner.Descriptor(), value, depth-1)
		}
	}
}

// field adds one value, or those of a list that stand together.
func (w *weight) field(f protoreflect.FieldDescriptor, kind protowire.Type, content []byte, depth int) {
	const number = 26 // the longest of 8 bytes, with what stands around it
	w.text += len(f.JSONName()) + 4
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		w.add(f.Message(), content, depth-1)
	case protoreflect.StringKind:
		w.message += len(content)
		w.text += quotedSize(content)
	case protoreflect.BytesKind:
		w.message += len(content)
		w.text += len(content)/3*4 + 6
	default:
		n := 1
		if kind == protowire.BytesType {
			n = packed(f.Kind(), content)
			w.message += n * 30 // as the list grows
		}
		switch f.Kind() {
		case protoreflect.EnumKind:
			w.text += n * (longestName(f.Enum()) + 4)
		case protoreflect.FloatKind, protoreflect.DoubleKind:
			w.text += n * number
		default:
			w.text += n*8 + 3*len(content) // a byte of a number is three digits at most
		}
	}
}

// packed returns how many numbers stand together.
func packed(kind protoreflect.Kind, content []byte) (n int) {
	switch kind { //nolint:exhaustive // the others are varints
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return len(content) / 4
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return len(content) / 8
	}
	for _, b := range content {
		if b < 0x80 {
			n++
		}
	}
	return n
}

// quotedSize is the length of a text in JSON.
func quotedSize(text []byte) int {
	n := len(text) + 4
	for _, c := range text {
		if c < ' ' || c == '"' || c == '\\' {
			n += 5
		}
	}
	return n
}

func longestName(e protoreflect.EnumDescriptor) (n int) {
	for i := range e.Values().Len() {
		n = max(n, len(e.Values().Get(i).Name()), 11) // a number, if it has no name
	}
	return n
}

// empty is the length of the JSON of a message without a value, as AppendAnswer writes it.
func (t *types) empty(m protoreflect.MessageDescriptor) int {
	if known, ok := t.empties.Load(m.FullName()); ok {
		n, _ := known.(int)
		return n
	}
	n := 40 // braces, or what a time is
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		if f.HasPresence() {
			continue // it is left out
		}
		n += len(f.JSONName()) + 10
		if f.Kind() == protoreflect.EnumKind && !f.IsList() {
			n += longestName(f.Enum())
		}
	}
	t.empties.Store(m.FullName(), n)
	return n
}
