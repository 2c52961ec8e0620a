package method

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/cabrank/cabrank/internal/schema"
	"github.com/cabrank/cabrank/internal/spelling"
)

// readError is what protojson says of a document.
//
// Units: offset is in bytes in the text that was read, -1 if it is not known.
type readError struct {
	text   string // without the place
	offset int
	places places
}

func (e *readError) Error() string { return e.text }

// newReadError takes the place out of an error of protojson: "(line 1:2): " stands
// before its text.
func newReadError(err error, text []byte, filled places) *readError {
	said := schema.Plain(err)
	found := regexp.MustCompile(`\(line (\d+):(\d+)\): `).FindStringSubmatchIndex(said)
	if found == nil {
		return &readError{text: said, offset: -1}
	}
	line, _ := strconv.Atoi(said[found[2]:found[3]])
	column, _ := strconv.Atoi(said[found[4]:found[5]])
	return &readError{text: said[found[1]:], offset: offsetOf(text, line, column), places: filled}
}

// offsetOf returns the offset of a line and a column that counts characters.
func offsetOf(text []byte, line, column int) int {
	offset := 0
	for range line - 1 {
		next := bytes.IndexByte(text[offset:], '\n')
		if next < 0 {
			return len(text)
		}
		offset += next + 1
	}
	for i := range string(text[offset:]) {
		if column--; column == 0 {
			return offset + i
		}
	}
	return len(text)
}

// wrongHole explains that a placeholder stands where none can.
func (r *reading) wrongHole(offset int, h hole) error {
	way := r.wayTo(offset)
	field := r.field(way)
	switch {
	case field == nil:
		return r.faultAt(h.begin, "%s%s cannot stand here: placeholders fill in texts and numbers", way.prefix(), h.placeholder)
	case (field.IsList() || field.IsMap()) && !way[len(way)-1].list:
		return r.faultAt(h.begin, "%s%s cannot fill in a value of the type %s", way.prefix(), h.placeholder, describe(field))
	case h.quote < 0 && field.Kind() == protoreflect.StringKind:
		return r.faultAt(h.begin, "%sa string: put %s in quotes", way.prefix(), h.placeholder)
	case field.Enum() != nil:
		return r.faultAt(h.begin, "%san enum (%s): placeholders fill in its numbers, without quotes", way.prefix(), single(field))
	case !h.isNumber() && isNumeric(field.Kind()):
		return r.faultAt(h.begin, "%sa number (%s): %s is a text", way.prefix(), single(field), h.placeholder)
	case isNumeric(field.Kind()):
		return r.faultAt(h.begin, "%s%s in a number stands alone in its quotes", way.prefix(), h.placeholder)
	}
	return r.faultAt(h.begin, "%s%s cannot fill in a value of the type %s: placeholders fill in texts and numbers",
		way.prefix(), h.placeholder, single(field))
}

// explain says what is wrong at a place of the document, with the way to it and what
// would be right.
func (r *reading) explain(offset int, text string) error {
	way := r.wayTo(offset)
	if strings.HasPrefix(text, "unknown field ") && len(way) > 0 {
		if parent := r.parent(way); parent != nil {
			return r.faultAt(offset, "%s%s has no field %q%s", way.prefix(), parent.FullName(), schema.OneLine(way[len(way)-1].name),
				fieldsNear(parent, way[len(way)-1].name))
		}
	}
	right := ""
	if field := r.field(way); field != nil && !strings.Contains(text, " key") {
		right = "; it is of the type " + describe(field) + valuesOf(field, text)
	}
	return r.faultAt(offset, "%s%s%s", way.prefix(), schema.OneLine(text), right)
}

func fieldsNear(parent protoreflect.MessageDescriptor, wrong string) string {
	var known []string
	for i := range parent.Fields().Len() {
		known = append(known, parent.Fields().Get(i).JSONName())
	}
	if near := spelling.Nearest(wrong, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	if len(known) == 0 {
		return ": it has none at all"
	}
	return among("its fields", wrong, known)
}

// valuesOf lists the values of an enum, nearest to the wrong one first.
func valuesOf(field protoreflect.FieldDescriptor, text string) string {
	if field.Enum() == nil {
		return ""
	}
	var known []string
	for i := range field.Enum().Values().Len() {
		known = append(known, string(field.Enum().Values().Get(i).Name()))
	}
	_, wrong, _ := strings.Cut(text, `"`)
	return among("its values", strings.TrimSuffix(wrong, `"`), known)
}

// describe names the type of a field as a .proto file does.
func describe(field protoreflect.FieldDescriptor) string {
	switch {
	case field.IsMap():
		return fmt.Sprintf("map<%s, %s>", describe(field.MapKey()), describe(field.MapValue()))
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

func isNumeric(kind protoreflect.Kind) bool {
	switch kind {
	case protoreflect.BoolKind, protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind, protoreflect.GroupKind:
		return false
	default:
		return true
	}
}

// step is a name or an index on the way into a document.
type step struct {
	name  string
	index int // of a list if there is no name, from 0
	list  bool
	url   string // the @type that stands before the name
}

// way leads from a document to a value in it.
type way []step

// prefix returns a way as people write it, "items[2].name: ", or nothing.
func (w way) prefix() string {
	var text strings.Builder
	for i, s := range w {
		switch {
		case s.list:
			fmt.Fprintf(&text, "[%d]", s.index)
		case i > 0:
			text.WriteString("." + schema.OneLine(s.name))
		default:
			text.WriteString(schema.OneLine(s.name))
		}
	}
	if text.Len() == 0 {
		return ""
	}
	return text.String() + ": "
}

// level is an object or a list that a walk through a document is in.
type level struct {
	step

	named bool // the name was read, its value comes next
}

// wayTo walks through the document up to the token at an offset of the source.
func (r *reading) wayTo(offset int) way {
	decoder := json.NewDecoder(bytes.NewReader(r.masked[r.begin:r.end]))
	var levels []level
	for {
		token, err := decoder.Token()
		if closing := token == json.Delim(']') || token == json.Delim('}'); closing && len(levels) > 0 {
			levels = levels[:len(levels)-1]
			if r.begin+int(decoder.InputOffset()) > offset {
				return trail(levels)
			}
			advance(levels)
			continue
		}
		if err != nil {
			return trail(levels)
		}
		name, isText := token.(string)
		if top := len(levels) - 1; top >= 0 && !levels[top].list && !levels[top].named && isText {
			levels[top].name, levels[top].named = name, true
			if r.begin+int(decoder.InputOffset()) > offset {
				return trail(levels)
			}
			continue
		}
		if r.begin+int(decoder.InputOffset()) > offset {
			return trail(levels)
		}
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{})
		case json.Delim('['):
			levels = append(levels, level{step: step{list: true}})
		default:
			if top := len(levels) - 1; isText && top >= 0 && levels[top].name == "@type" {
				levels[top].url = name
			}
			advance(levels)
		}
	}
}

// advance notes that a value has ended.
func advance(levels []level) {
	if len(levels) == 0 {
		return
	}
	top := &levels[len(levels)-1]
	top.named = false
	top.index++
}

// trail returns the way to where a walk is.
func trail(levels []level) way {
	var w way
	for _, l := range levels {
		if l.list || l.named {
			w = append(w, l.step)
		}
	}
	return w
}

// parent returns the message that the last name of a way should be a field of, or nil
// if it is not known.
func (r *reading) parent(w way) protoreflect.MessageDescriptor {
	at := r.input
	for i := 0; i < len(w) && at != nil; i++ {
		if w[i].list {
			continue
		}
		at = r.opened(at, w[i].url)
		if i == len(w)-1 || at == nil {
			return at
		}
		field := fieldOf(at, w[i].name)
		switch {
		case field == nil:
			return nil
		case field.IsMap():
			at = field.MapValue().Message()
			i++ // the key
		default:
			at = field.Message()
		}
	}
	return nil
}

// opened returns what an Any holds, and any other message as it is.
func (r *reading) opened(m protoreflect.MessageDescriptor, url string) protoreflect.MessageDescriptor {
	if m.FullName() != anyName {
		return m
	}
	if found, err := r.types.FindMessageByURL(url); err == nil {
		return found.Descriptor()
	}
	return nil
}

// field returns the field at the end of a way, or nil.
func (r *reading) field(w way) protoreflect.FieldDescriptor {
	for len(w) > 0 && w[len(w)-1].list {
		w = w[:len(w)-1]
	}
	if len(w) == 0 {
		return nil
	}
	if parent := r.parent(w); parent != nil {
		return fieldOf(parent, w[len(w)-1].name)
	}
	// The key of a map is no field: its map is.
	if above := w[:len(w)-1]; len(above) > 0 {
		if parent := r.parent(above); parent != nil {
			if field := fieldOf(parent, above[len(above)-1].name); field != nil && field.IsMap() {
				return field.MapValue()
			}
		}
	}
	return nil
}

func fieldOf(parent protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if field := parent.Fields().ByJSONName(name); field != nil {
		return field
	}
	return parent.Fields().ByTextName(name)
}
