package method

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Each placeholder of a document is read twice, with two marks in its place. In a
// string it is one character of a private plane of Unicode, as a number one of two
// neighbors that even a float can hold. A constant never differs between the two, so
// that no mark has to be unlike what people write.
const (
	firstRune  = 0xF0000
	secondRune = 0x100000
	baseNumber = 8_000_000
)

// anyName is the message that has another one in it.
const anyName = "google.protobuf.Any"

// layout turns the two messages of a document into parts.
type layout struct {
	holes []hole
	found []bool // by hole
	types *lookup
}

// message returns the parts of a message without a length before them. b is what a
// is, but for the marks.
func (l *layout) message(a, b protoreflect.Message) ([]part, error) {
	if a.Descriptor().FullName() == anyName {
		return l.anything(a, b)
	}
	var fields []protoreflect.FieldDescriptor
	for field := range a.Range {
		fields = append(fields, field)
	}
	sort.Slice(fields, func(i, j int) bool { return fields[i].Number() < fields[j].Number() })
	var parts []part
	for _, field := range fields {
		va, vb := a.Get(field), b.Get(field)
		if !b.Has(field) {
			return nil, errNotLikely
		}
		if va.Equal(vb) {
			alone := a.New()
			alone.Set(field, va)
			encoded, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(alone.Interface())
			if err != nil {
				return nil, err
			}
			parts = append(parts, part{fixed: encoded})
			continue
		}
		more, err := l.field(field, va, vb)
		if err != nil {
			return nil, err
		}
		parts = append(parts, more...)
	}
	return parts, nil
}

// errNotLikely says that the two readings differ in more than the marks: this cannot
// be seen in a document that protojson accepts.
var errNotLikely = errors.New("a placeholder changes more than one value")

// field returns the parts of a field that has a placeholder in it.
func (l *layout) field(field protoreflect.FieldDescriptor, a, b protoreflect.Value) ([]part, error) {
	switch {
	case field.IsList() && field.IsPacked():
		inner, err := l.list(field, a.List(), b.List(), false)
		return tagged(field.Number(), inner), err
	case field.IsList():
		return l.list(field, a.List(), b.List(), true)
	case field.IsMap():
		return l.entries(field, a.Map(), b.Map())
	}
	return l.value(field, field.Number(), a, b)
}

// tagged returns parts with a tag and their length before them.
func tagged(number protowire.Number, inner []part) []part {
	tag := protowire.AppendTag(nil, number, protowire.BytesType)
	if len(inner) == 0 {
		return []part{{fixed: append(tag, 0)}}
	}
	return []part{{fixed: tag}, {inner: inner}}
}

func (l *layout) list(field protoreflect.FieldDescriptor, a, b protoreflect.List, tags bool) ([]part, error) {
	if a.Len() != b.Len() {
		return nil, errNotLikely
	}
	number := field.Number()
	if !tags {
		number = 0
	}
	var parts []part
	for i := range a.Len() {
		more, err := l.value(field, number, a.Get(i), b.Get(i))
		if err != nil {
			return nil, err
		}
		parts = append(parts, more...)
	}
	return parts, nil
}

// entries returns the parts of a map: messages with the key in field 1 and the value
// in field 2, in the order of the keys.
func (l *layout) entries(field protoreflect.FieldDescriptor, a, b protoreflect.Map) ([]part, error) {
	var keys []protoreflect.MapKey
	for key := range a.Range {
		keys = append(keys, key)
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
	var parts []part
	for _, key := range keys {
		if !b.Has(key) {
			return nil, errNotLikely
		}
		kind := field.MapKey().Kind()
		entry := protowire.AppendTag(nil, 1, wireType(kind))
		entry = appendScalar(entry, kind, key.Value())
		value, err := l.value(field.MapValue(), 2, a.Get(key), b.Get(key))
		if err != nil {
			return nil, err
		}
		parts = append(parts, tagged(field.Number(), append([]part{{fixed: entry}}, value...))...)
	}
	return parts, nil
}

// value returns the parts of one value: of a field, of a list or of a map. Number 0
// stands for no tag.
func (l *layout) value(field protoreflect.FieldDescriptor, number protowire.Number, a, b protoreflect.Value) ([]part, error) {
	kind := field.Kind()
	if kind == protoreflect.MessageKind || kind == protoreflect.GroupKind {
		inner, err := l.message(a.Message(), b.Message())
		if err != nil {
			return nil, err
		}
		if kind == protoreflect.MessageKind {
			return tagged(number, inner), nil
		}
		inner = slices.Insert(inner, 0, part{fixed: protowire.AppendTag(nil, number, protowire.StartGroupType)})
		return append(inner, part{fixed: protowire.AppendTag(nil, number, protowire.EndGroupType)}), nil
	}
	var tag []byte
	if number != 0 {
		tag = protowire.AppendTag(nil, number, wireType(kind))
	}
	if a.Equal(b) {
		return []part{{fixed: appendScalar(tag, kind, a)}}, nil
	}
	if kind == protoreflect.StringKind {
		inner, err := l.text(a.String(), b.String())
		return []part{{fixed: tag}, {inner: inner}}, err
	}
	filled, err := l.number(field, a, b)
	return []part{{fixed: tag}, filled}, err
}

// text returns the parts of a string, its placeholders between what is constant.
func (l *layout) text(a, b string) ([]part, error) {
	var parts []part
	for constant := 0; ; {
		ra, width := utf8.DecodeRuneInString(a[constant:])
		rb, widthB := utf8.DecodeRuneInString(b[constant:])
		same := constant
		for width > 0 && ra == rb && width == widthB {
			same += width
			ra, width = utf8.DecodeRuneInString(a[same:])
			rb, widthB = utf8.DecodeRuneInString(b[same:])
		}
		if same > constant {
			parts = append(parts, part{fixed: []byte(a[constant:same])})
		}
		if width == 0 && widthB == 0 {
			return parts, nil
		}
		index := int(ra) - firstRune
		if width != widthB || int(rb)-secondRune != index || !l.take(index) {
			return nil, errNotLikely
		}
		h := l.holes[index]
		parts = append(parts, part{fill: &fill{placeholder: h.placeholder, hole: uint64(index), kind: protoreflect.StringKind}})
		constant = same + width
	}
}

// number returns the part of a number that a placeholder gives.
func (l *layout) number(field protoreflect.FieldDescriptor, a, b protoreflect.Value) (part, error) {
	first, second := integer(field.Kind(), a), integer(field.Kind(), b)
	index := (first - baseNumber) / 2
	if first%2 != 0 || second != first+1 || index >= int64(len(l.holes)) || !l.take(int(index)) {
		return part{}, errNotLikely
	}
	h := l.holes[index]
	least, greatest := bounds(field.Kind())
	if from, upTo := h.limits(); from < least || upTo > greatest {
		return part{}, &misfitError{hole: h, field: field}
	}
	return part{fill: &fill{placeholder: h.placeholder, hole: uint64(index), kind: field.Kind()}}, nil
}

// misfitError says that the values of a placeholder are beyond a field.
type misfitError struct {
	hole  hole
	field protoreflect.FieldDescriptor
}

func (e *misfitError) Error() string {
	return fmt.Sprintf("%s does not fit into the type %s", e.hole.placeholder, single(e.field))
}

// take notes that a placeholder was found. Each is in one place.
func (l *layout) take(index int) bool {
	if index < 0 || index >= len(l.holes) || l.found[index] {
		return false
	}
	l.found[index] = true
	return true
}

// integer returns a number as a whole one, or -1 if it is none.
func integer(kind protoreflect.Kind, v protoreflect.Value) int64 {
	switch kind {
	case protoreflect.EnumKind:
		return int64(v.Enum())
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind,
		protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return v.Int()
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return int64(v.Uint())
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		if f := v.Float(); f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return int64(f)
		}
	default:
	}
	return -1
}

// bounds are the least and the greatest whole number of a kind.
func bounds(kind protoreflect.Kind) (least, greatest int64) {
	switch kind {
	case protoreflect.EnumKind, protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return math.MinInt32, math.MaxInt32
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return 0, math.MaxUint32
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return 0, math.MaxInt64
	default:
		return math.MinInt64, math.MaxInt64
	}
}

// anything returns the parts of an Any whose message has placeholders in it.
//
// Source: google/protobuf/any.proto: field 1 is the URL, field 2 the encoded message.
func (l *layout) anything(a, b protoreflect.Message) ([]part, error) {
	url, value := a.Descriptor().Fields().ByNumber(1), a.Descriptor().Fields().ByNumber(2)
	typ, err := l.types.FindMessageByURL(a.Get(url).String())
	if err != nil {
		return nil, err
	}
	innerA, innerB := typ.New(), typ.New()
	options := proto.UnmarshalOptions{AllowPartial: true, Resolver: l.types}
	if err := errors.Join(
		options.Unmarshal(a.Get(value).Bytes(), innerA.Interface()),
		options.Unmarshal(b.Get(value).Bytes(), innerB.Interface()),
	); err != nil {
		return nil, err
	}
	inner, err := l.message(innerA, innerB)
	if err != nil {
		return nil, err
	}
	head := protowire.AppendTag(nil, url.Number(), protowire.BytesType)
	head = protowire.AppendString(head, a.Get(url).String())
	return append([]part{{fixed: head}}, tagged(value.Number(), inner)...), nil
}
