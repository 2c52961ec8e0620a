package method

import (
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// part is a piece of an encoded message: bytes that are always the same, the value of
// a placeholder, or parts with their length before them.
//
// Shape: exactly one of fixed, inner and fill is in use.
// Source: the wire format of protobuf.
type part struct {
	fixed []byte
	inner []part
	fill  *fill
}

// fill is a placeholder in a field.
type fill struct {
	placeholder

	hole uint64            // its place in the document
	kind protoreflect.Kind // StringKind, or that of a number
}

// merged returns parts with all that is constant in one piece.
func merged(parts []part) []part {
	var all []part
	for _, p := range parts {
		if p.inner != nil {
			p.inner = merged(p.inner)
			if len(p.inner) == 1 && p.inner[0].isFixed() {
				p = part{fixed: protowire.AppendBytes(nil, p.inner[0].fixed)}
			}
		}
		if last := len(all) - 1; last >= 0 && p.isFixed() && all[last].isFixed() {
			all[last].fixed = slices.Concat(all[last].fixed, p.fixed)
			continue
		}
		all = append(all, p)
	}
	return all
}

func (p part) isFixed() bool { return p.inner == nil && p.fill == nil }

// appendParts encodes parts for one spot.
func appendParts(dst []byte, parts []part, at spot) []byte {
	for i := range parts {
		switch p := &parts[i]; {
		case p.fill != nil:
			dst = p.fill.encode(dst, at)
		case p.inner != nil:
			dst = appendInner(dst, p.inner, at)
		default:
			dst = append(dst, p.fixed...)
		}
	}
	return dst
}

// appendInner encodes parts and their length before them. The length is known when
// they are written: most are short and take the one byte that was left for it.
func appendInner(dst []byte, parts []part, at spot) []byte {
	begin := len(dst)
	dst = appendParts(append(dst, 0), parts, at)
	length := len(dst) - begin - 1
	wide := protowire.SizeVarint(uint64(length))
	for range wide - 1 {
		dst = append(dst, 0)
	}
	if wide > 1 {
		copy(dst[begin+wide:], dst[begin+1:begin+1+length])
	}
	protowire.AppendVarint(dst[:begin], uint64(length))
	return dst
}

func (f *fill) encode(dst []byte, at spot) []byte {
	at.hole = f.hole
	if f.kind == protoreflect.StringKind {
		return f.append(dst, at)
	}
	if f.word == drawn { // with its decimals, where the field has them
		switch v := f.draw.value(at.share()); f.kind {
		case protoreflect.DoubleKind:
			return appendScalar(dst, f.kind, protoreflect.ValueOfFloat64(v))
		case protoreflect.FloatKind:
			return appendScalar(dst, f.kind, protoreflect.ValueOfFloat32(float32(v)))
		default: // a whole number
		}
	}
	return appendScalar(dst, f.kind, numberOf(f.kind, f.number(at)))
}

// size returns the most bytes that parts take.
func size(parts []part) int {
	total := 0
	for _, p := range parts {
		switch {
		case p.fill != nil && p.fill.kind == protoreflect.StringKind:
			total += p.fill.size()
		case p.fill != nil:
			total += protowire.SizeVarint(math.MaxUint64)
		case p.inner != nil:
			total += size(p.inner) + protowire.SizeVarint(math.MaxUint32)
		default:
			total += len(p.fixed)
		}
	}
	return total
}

// numberOf returns a number as a value of a kind, which it fits.
func numberOf(kind protoreflect.Kind, n int64) protoreflect.Value {
	switch kind {
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(n))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(n))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(n))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(n))
	default:
		return protoreflect.ValueOfInt64(n)
	}
}

// appendScalar encodes a value without its tag.
func appendScalar(dst []byte, kind protoreflect.Kind, v protoreflect.Value) []byte {
	switch kind {
	case protoreflect.BoolKind:
		return protowire.AppendVarint(dst, protowire.EncodeBool(v.Bool()))
	case protoreflect.EnumKind:
		return protowire.AppendVarint(dst, uint64(v.Enum()))
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		return protowire.AppendVarint(dst, uint64(v.Int()))
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		return protowire.AppendVarint(dst, protowire.EncodeZigZag(v.Int()))
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		return protowire.AppendVarint(dst, v.Uint())
	case protoreflect.Sfixed32Kind:
		return protowire.AppendFixed32(dst, uint32(v.Int()))
	case protoreflect.Sfixed64Kind:
		return protowire.AppendFixed64(dst, uint64(v.Int()))
	case protoreflect.Fixed32Kind:
		return protowire.AppendFixed32(dst, uint32(v.Uint()))
	case protoreflect.Fixed64Kind:
		return protowire.AppendFixed64(dst, v.Uint())
	case protoreflect.FloatKind:
		return protowire.AppendFixed32(dst, math.Float32bits(float32(v.Float())))
	case protoreflect.DoubleKind:
		return protowire.AppendFixed64(dst, math.Float64bits(v.Float()))
	case protoreflect.StringKind:
		return protowire.AppendString(dst, v.String())
	case protoreflect.BytesKind:
		return protowire.AppendBytes(dst, v.Bytes())
	case protoreflect.MessageKind, protoreflect.GroupKind:
	}
	return dst // messages have parts of their own
}

// wireType returns how values of a kind are delimited.
func wireType(kind protoreflect.Kind) protowire.Type {
	switch kind {
	case protoreflect.Sfixed32Kind, protoreflect.Fixed32Kind, protoreflect.FloatKind:
		return protowire.Fixed32Type
	case protoreflect.Sfixed64Kind, protoreflect.Fixed64Kind, protoreflect.DoubleKind:
		return protowire.Fixed64Type
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		return protowire.BytesType
	case protoreflect.GroupKind:
		return protowire.StartGroupType
	default:
		return protowire.VarintType
	}
}
