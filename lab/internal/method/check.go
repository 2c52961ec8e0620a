package method

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/cabrank/cabrank/internal/schema"
	"github.com/cabrank/cabrank/internal/spelling"
)

// In the sample of a document each placeholder is a number that says which one it is, and
// that every kind of number has room for: 3141593e000 is the first.
const (
	firstMark = 3_141_593
	mostMarks = 1_000_000 // then they begin again; a document has fewer holes
)

// marks matches them in a text.
var marks = regexp.MustCompile(`[34]\d{6}e0+`)

// mark is what stands in a sample for the hole of a number, as long as the hole.
func mark(number, length int) string {
	digits := strconv.Itoa(firstMark + number%mostMarks)
	return digits + "e" + strings.Repeat("0", length-len(digits)-1)
}

func (d document) marked() map[int]*hole {
	all := map[int]*hole{}
	holes := d.inside()
	for i := range holes {
		all[numberOf(string(d.sample[holes[i].begin:holes[i].end]))] = &holes[i]
	}
	return all
}

func numberOf(text string) int {
	digits, _, _ := strings.Cut(text, "e")
	n, _ := strconv.Atoi(digits) // it matches
	return n
}

// check finds the placeholders of a document in the message that its sample gives.
//
// Errors: one line: the first placeholder that cannot stand where it does.
func (d document) check(m protoreflect.Message, types *resolver) error {
	left, wrong := d.marked(), map[int]string{}
	enter := func(number int, at protopath.Values) {
		if h := left[number]; h != nil {
			delete(left, number)
			wrong[h.begin] = h.enter(fieldAt(at.Path))
		}
	}
	err := protorange.Options{Resolver: types}.Range(m, func(at protopath.Values) error {
		switch v := reflect.ValueOf(at.Index(-1).Value.Interface()); {
		case v.Kind() == reflect.String:
			for _, text := range marks.FindAllString(v.String(), -1) {
				enter(numberOf(text), at)
			}
		case v.CanInt():
			enter(int(v.Int()), at)
		case v.CanUint():
			enter(int(v.Uint()), at)
		case v.CanFloat():
			enter(int(v.Float()), at)
		}
		return nil
	}, nil)
	if err != nil {
		return err
	}
	for _, h := range left {
		wrong[h.begin] = h.name + " cannot stand here: placeholders fill in texts, or alone a number, and no names or keys"
	}
	for _, h := range d.inside() {
		if why := wrong[h.begin]; why != "" {
			return d.faultIn(h.begin, why)
		}
	}
	return nil
}

// faultIn returns an error about a place in a document, with the way to it and with
// placeholders as they were written.
func (d document) faultIn(offset int, text string) error {
	known := d.marked()
	return d.faultAt(offset, "%s", marks.ReplaceAllStringFunc(schema.OneLine(d.way(offset)+text), func(mark string) string {
		if h := known[numberOf(mark)]; h != nil {
			return h.name
		}
		return mark
	}))
}

// way is where in a document something is, as errors begin with it: "items.2.name: ".
func (d document) way(offset int) string {
	decoder := jsontext.NewDecoder(bytes.NewReader(d.sample[d.begin:d.end]), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for err := error(nil); err == nil && decoder.InputOffset() <= int64(offset-d.begin); {
		_, err = decoder.ReadToken()
	}
	way := strings.ReplaceAll(strings.TrimPrefix(string(decoder.StackPointer()), "/"), "/", ".")
	if way == "" {
		return ""
	}
	return way + ": "
}

// fieldAt is the field whose value stands at the end of a path.
func fieldAt(path protopath.Path) (field protoreflect.FieldDescriptor) {
	for _, step := range path {
		if step.Kind() == protopath.FieldAccessStep {
			field = step.FieldDescriptor()
		}
	}
	if field.IsMap() {
		return field.MapValue()
	}
	return field
}

// enter has a placeholder fill in a field, if it can.
func (h *hole) enter(field protoreflect.FieldDescriptor) (wrong string) {
	if field.Kind() == protoreflect.StringKind {
		return ""
	}
	least, greatest := bounds(field.Kind())
	h.round = greatest < math.Inf(1)
	switch {
	case !h.isNumber():
		return fmt.Sprintf("a number (%s), and %s is a text", field.Kind(), h.name)
	case h.least < least || h.greatest > greatest:
		return fmt.Sprintf("%s does not fit into the type %s", h.name, field.Kind())
	}
	return ""
}

// bounds are the least and the greatest number of a kind.
func bounds(kind protoreflect.Kind) (least, greatest float64) {
	switch kind { //nolint:exhaustive // the others are floating, or have no numbers
	case protoreflect.EnumKind, protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return math.MinInt32, math.MaxInt32
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return 0, math.MaxUint32
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return math.MinInt64, math.MaxInt64
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return 0, math.MaxInt64
	}
	return math.Inf(-1), math.Inf(1)
}

// position is how protojson says where something is.
var position = regexp.MustCompile(`\(line (\d+):(\d+)\): `)

// fault says where protojson has found what, and what was probably meant.
func (d document) fault(err error, input protoreflect.MessageDescriptor) error {
	text, offset := schema.Plain(err), d.begin
	if found := position.FindStringSubmatchIndex(text); found != nil {
		line, _ := strconv.Atoi(text[found[2]:found[3]])
		column, _ := strconv.Atoi(text[found[4]:found[5]])
		offset, text = d.begin+offsetOf(d.sample[d.begin:d.end], line, column), text[found[1]:]
	}
	if strings.Contains(text, "string field") && slices.ContainsFunc(d.inside(), func(h hole) bool { return h.begin == offset }) {
		text += "; put it in quotes"
	}
	if strings.HasPrefix(text, "unknown field") || strings.Contains(text, "enum field") {
		_, wrong, _ := strings.Cut(text, `"`)
		wrong, _, _ = strings.Cut(wrong, `"`)
		if meant := spelling.Nearest(wrong, words(input, map[protoreflect.FullName]bool{})); meant != "" && meant != wrong {
			text += fmt.Sprintf("; did you mean %q?", meant)
		}
	}
	return d.faultIn(offset, text)
}

// words are the names that may stand in JSON for a message: of fields and of the values of
// enums, in all messages that it may have in it.
func words(m protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) (all []string) {
	if seen[m.FullName()] {
		return nil
	}
	seen[m.FullName()] = true
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		all = append(all, field.JSONName(), field.TextName())
		if field.Message() != nil {
			all = append(all, words(field.Message(), seen)...)
		}
		if field.Enum() != nil {
			all = append(all, names(field.Enum().Values(), protoreflect.EnumValueDescriptor.Name)...)
		}
	}
	return all
}
