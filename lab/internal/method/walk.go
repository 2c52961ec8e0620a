package method

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/cabrank/cabrank/internal/schema"
	"github.com/cabrank/cabrank/internal/spelling"
)

// value is what a walk knows of a place in a document where a JSON value stands.
type value struct {
	way    string                         // as people write it: items[2].name
	parent protoreflect.MessageDescriptor // whose field it is; nil: not known, or it is no field
	field  protoreflect.FieldDescriptor   // or that of the values of a map; nil as above
	of     protoreflect.MessageDescriptor // nil: it is no message, or not known
	many   bool                           // all of a list or a map
	free   bool                           // any JSON
	packed bool                           // of is what an Any holds
}

// settled looks into messages of protobuf itself that JSON has in another form.
func (v value) settled() value {
	if v.many || v.of == nil || v.of.FullName().Parent() != "google.protobuf" {
		return v
	}
	switch name := v.of.Name(); {
	case name == "Struct", name == "Value", name == "ListValue":
		v.free = true
	case strings.HasSuffix(string(name), "Value"): // a wrapper
		v.field, v.of = v.of.Fields().ByName("value"), nil
	}
	return v
}

// element returns what is known of a value in a list.
func (v value) element(index int) value {
	v.way, v.many = fmt.Sprintf("%s[%d]", v.way, index), false
	return v.settled()
}

// member returns what is known of the value behind a name.
func (v value) member(name string, types *resolver) value {
	m := value{way: schema.OneLine(name), free: v.free}
	if v.way != "" {
		m.way = v.way + "." + m.way
	}
	switch {
	case v.many && v.field.IsMap():
		m.field, m.of = v.field.MapValue(), v.field.MapValue().Message()
	case v.many || v.free || v.of == nil:
	case v.packed && name == "value" && v.of.FullName().Parent() == "google.protobuf":
		m.of = v.of
	default:
		m.parent, m.field = v.of, types.fieldOf(v.of, name)
		if m.field != nil {
			m.of, m.many = m.field.Message(), m.field.IsList() || m.field.IsMap()
		}
	}
	return m.settled()
}

// walk goes through a document, token by token, and has each placeholder find its field.
type walk struct {
	document

	decoder *json.Decoder // of masked
	types   *resolver
	holes   []hole // that are still to come
	// fault is what protojson says of the token at an offset, or ends; -1: nothing.
	fault  string
	offset int
}

// anyName is the message that has another one in it.
const anyName = "google.protobuf.Any"

// check walks through a document, of which protojson says a fault, if any.
//
// Errors: one line: what the fault is about, or a placeholder that cannot stand where it
// does, whichever is first.
func (d document) check(input protoreflect.MessageDescriptor, types *resolver, offset int, fault string) error {
	decoder := json.NewDecoder(bytes.NewReader(d.masked[d.begin:d.end]))
	decoder.UseNumber()
	w := &walk{document: d, decoder: decoder, types: types, holes: d.inside(), offset: offset, fault: fault}
	return w.value(value{of: input}.settled())
}

func (w *walk) value(v value) error {
	token, begin, err := w.next()
	if err != nil {
		return err
	}
	if err := w.visit(v, begin, false); err != nil {
		return err
	}
	switch token {
	case json.Delim('['):
		err = w.list(v)
	case json.Delim('{'):
		if v.of != nil && v.of.FullName() == anyName {
			v.of, v.packed = w.unpack(begin), true
		}
		err = w.object(v)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	if _, begin, err = w.next(); err != nil {
		return err
	}
	return w.visit(v, begin, false)
}

func (w *walk) list(v value) error {
	for i := 0; w.decoder.More(); i++ {
		if err := w.value(v.element(i)); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) object(v value) error {
	for w.decoder.More() {
		token, begin, err := w.next()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		m := v.member(name, w.types)
		if err := w.visit(m, begin, true); err != nil {
			return err
		}
		if err := w.value(m); err != nil {
			return err
		}
	}
	return nil
}

// next reads a token.
func (w *walk) next() (token json.Token, begin int, err error) {
	begin = w.begin + int(w.decoder.InputOffset())
	rest := w.masked[begin:w.end]
	begin += len(rest) - len(bytes.TrimLeft(rest, " \t\r\n,:"))
	token, err = w.decoder.Token()
	return token, begin, err
}

// unpack returns the message that the Any at an offset holds, or nil. Its type may stand
// behind what it has.
func (w *walk) unpack(begin int) protoreflect.MessageDescriptor {
	var head struct {
		URL string `json:"@type"`
	}
	_ = json.NewDecoder(bytes.NewReader(w.masked[begin:w.end])).Decode(&head)
	if found, err := w.types.FindMessageByURL(head.URL); err == nil {
		return found.Descriptor()
	}
	return nil
}

// visit checks the token that was read.
func (w *walk) visit(v value, begin int, isName bool) error {
	end := w.begin + int(w.decoder.InputOffset())
	for len(w.holes) > 0 && w.holes[0].begin < end {
		h := &w.holes[0]
		w.holes = w.holes[1:]
		if isName {
			return w.faultAt(h.begin, "a placeholder is for values: it cannot be in a name or a key")
		}
		if v.field == nil && !v.free && w.offset >= end {
			continue // the fault is why nothing is known
		}
		if wrong := h.enter(v, w.masked[begin:end]); wrong != "" {
			return w.faultAt(h.begin, "%s%s", v.prefix(), wrong)
		}
	}
	if w.offset >= end || w.offset < 0 {
		return nil
	}
	return w.faultAt(w.offset, "%s%s", v.prefix(), v.explain(w.fault, isName))
}

// prefix returns the way as errors begin with it.
func (v value) prefix() string {
	if v.way == "" {
		return ""
	}
	return v.way + ": "
}

// enter has a placeholder fill in a field, if it stands in a token of it that may.
func (h *hole) enter(v value, token []byte) (wrong string) {
	quoted, alone := token[0] == '"', len(bytes.Trim(token, `"`)) == h.end-h.begin
	switch {
	case !quoted && !h.isNumber():
		return h.name + " is a text: put it in quotes"
	case !quoted && !alone:
		return h.name + " is a whole number: no digits can stand beside it"
	case v.free:
		return ""
	case v.field == nil:
		return h.name + " cannot stand here: placeholders fill in texts and numbers"
	case v.many:
		return h.name + " cannot fill in a value of the type " + describe(v.field)
	}
	least, greatest := bounds(v.field.Kind())
	h.round = greatest < math.Inf(1)
	switch kind := v.field.Kind(); {
	case kind == protoreflect.StringKind && quoted:
		return ""
	case kind == protoreflect.StringKind:
		return "a string: put " + h.name + " in quotes"
	case kind == protoreflect.EnumKind && quoted:
		return fmt.Sprintf("an enum (%s): placeholders fill in its numbers, without quotes", single(v.field))
	case least == greatest:
		return fmt.Sprintf("%s cannot fill in a value of the type %s: placeholders fill in texts and numbers", h.name, single(v.field))
	case !h.isNumber():
		return fmt.Sprintf("a number (%s): %s is a text", single(v.field), h.name)
	case !alone:
		return h.name + " in a number stands alone in its quotes"
	case h.least < least || h.greatest > greatest:
		return h.name + " does not fit into the type " + single(v.field)
	}
	return ""
}

// bounds are the least and the greatest number of a kind; both are 0 if it has none.
func bounds(kind protoreflect.Kind) (least, greatest float64) {
	switch kind { //nolint:exhaustive // the others have no numbers
	case protoreflect.EnumKind, protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return math.MinInt32, math.MaxInt32
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return 0, math.MaxUint32
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return math.MinInt64, math.MaxInt64
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return 0, math.MaxInt64
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return math.Inf(-1), math.Inf(1)
	}
	return 0, 0
}

// explain adds to what protojson says what would be right.
func (v value) explain(fault string, isName bool) string {
	_, wrong, _ := strings.Cut(fault, `"`)
	wrong = schema.OneLine(strings.TrimSuffix(wrong, `"`))
	switch {
	case isName && v.parent != nil && strings.HasPrefix(fault, "unknown field "):
		return fmt.Sprintf("%s has no field %q%s", v.parent.FullName(), wrong, fieldsNear(v.parent, wrong))
	case v.field == nil || strings.Contains(fault, " key"):
		return schema.OneLine(fault)
	}
	right := "; it is of the type " + describe(v.field)
	if enum := v.field.Enum(); enum != nil {
		right += among("its values", wrong, names(enum.Values(), protoreflect.EnumValueDescriptor.Name))
	}
	return schema.OneLine(fault) + right
}

func fieldsNear(parent protoreflect.MessageDescriptor, wrong string) string {
	known := names(parent.Fields(), protoreflect.FieldDescriptor.JSONName)
	if near := spelling.Nearest(wrong, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	if len(known) == 0 {
		return ": it has none at all"
	}
	return among("its fields", wrong, known)
}

// describe names the type of a field as a .proto file does.
func describe(field protoreflect.FieldDescriptor) string {
	switch {
	case field.IsMap():
		return fmt.Sprintf("map<%s, %s>", single(field.MapKey()), single(field.MapValue()))
	case field.IsList():
		return "repeated " + single(field)
	}
	return single(field)
}

func single(field protoreflect.FieldDescriptor) string {
	switch {
	case field.Message() != nil:
		return string(field.Message().FullName())
	case field.Enum() != nil:
		return string(field.Enum().FullName())
	}
	return field.Kind().String()
}
