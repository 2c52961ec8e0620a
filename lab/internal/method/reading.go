package method

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/cabrank/cabrank/internal/schema"
)

// maxDepth bounds messages in messages. Most servers refuse more than 100.
const maxDepth = 1_000

// reading turns one document into a message.
type reading struct {
	document

	input protoreflect.MessageDescriptor
	types *lookup
	here  []hole // those of the document
	// number says which placeholders in quotes fill in numbers: 64 bits are written
	// in quotes in JSON, and the text does not tell.
	number []bool
}

// message is what one request message is made of.
type message struct {
	ready []byte // encoded, if it has no placeholder
	parts []part
	size  int // at most
}

// read returns the message of a document.
func (d document) read(input protoreflect.MessageDescriptor, types *lookup) (message, error) {
	r := reading{document: d, input: input, types: types, here: d.inside()}
	if len(r.here) > maxHoles {
		return message{}, d.faultAt(d.begin, "a request with more than %d placeholders", maxHoles)
	}
	r.number = make([]bool, len(r.here))
	for i, h := range r.here {
		r.number[i] = h.quote < 0
	}
	for {
		again, err := r.try()
		if err != nil {
			return message{}, err
		}
		if again == nil {
			continue
		}
		return *again, nil
	}
}

// try reads the document once. It returns nothing if it has to be read again, since a
// placeholder turned out to be a number.
func (r *reading) try() (*message, error) {
	a, err := r.parse(0)
	if err != nil {
		return nil, r.settle(err)
	}
	if len(r.here) == 0 {
		encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(a)
		if err != nil {
			return nil, r.faultAt(r.begin, "%s", schema.OneLine(schema.Plain(err)))
		}
		return &message{ready: encoded, size: len(encoded)}, nil
	}
	b, err := r.parse(1)
	if err != nil {
		return nil, r.settle(err)
	}
	l := layout{holes: r.here, found: make([]bool, len(r.here)), types: r.types}
	parts, err := l.message(a.ProtoReflect(), b.ProtoReflect())
	if misfit := (*misfitError)(nil); errors.As(err, &misfit) {
		return nil, r.faultAt(misfit.hole.begin, "%s%s", r.wayTo(misfit.hole.begin).prefix(), misfit)
	} else if err != nil {
		return nil, r.faultAt(r.begin, "%s", schema.OneLine(schema.Plain(err)))
	}
	for i, found := range l.found {
		if !found {
			return nil, r.faultAt(r.here[i].begin, "%s cannot stand here: placeholders fill in texts and numbers", r.here[i].placeholder)
		}
	}
	parts = merged(parts)
	return &message{parts: parts, size: size(parts)}, nil
}

// parse reads the document with the first or the second mark of each placeholder.
func (r *reading) parse(which int) (proto.Message, error) {
	text, places := r.fill(which)
	m := dynamicpb.NewMessage(r.input)
	err := protojson.UnmarshalOptions{Resolver: r.types, RecursionLimit: maxDepth}.Unmarshal(text, m)
	if err != nil {
		return nil, newReadError(err, text, places)
	}
	return m, nil
}

// places are the offsets in a text with marks, where each mark begins and ends.
type places []struct{ begin, end int }

// fill returns the document with marks in place of its placeholders.
func (r *reading) fill(which int) ([]byte, places) {
	var text []byte
	filled := make(places, len(r.here))
	from := r.begin
	for i, h := range r.here {
		text = append(text, r.text[from:h.begin]...)
		filled[i].begin = len(text)
		if r.number[i] {
			text = strconv.AppendInt(text, int64(baseNumber+2*i+which), 10)
		} else {
			text = utf8.AppendRune(text, rune([...]int{firstRune, secondRune}[which]+i))
		}
		filled[i].end = len(text)
		from = h.end
	}
	return append(text, r.text[from:r.end]...), filled
}

// origin returns the offset in the source for one in a text with marks.
func (r *reading) origin(offset int, filled places) int {
	for i, mark := range slices.Backward(filled) {
		if offset >= mark.end {
			return r.here[i].end + offset - mark.end
		}
		if offset >= mark.begin {
			return r.here[i].begin
		}
	}
	return r.begin + offset
}

// settle decides what an error is about. Nothing means that the document is to be read
// again: a placeholder alone in its quotes is a number from now on.
func (r *reading) settle(err error) error {
	at, ok := err.(*readError) //nolint:errorlint // parse returns no other
	if !ok || at.offset < 0 {
		return r.faultAt(r.begin, "%s", schema.OneLine(schema.Plain(err)))
	}
	offset := r.origin(at.offset, at.places)
	for i, h := range r.here {
		switch {
		case h.quote < 0 && h.begin == offset:
			return r.wrongHole(offset, h)
		case h.quote < 0 || h.quote != offset:
		case h.isNumber() && !r.number[i] && h.begin == h.quote+1 && bytes.HasPrefix(r.text[h.end:], []byte{'"'}):
			r.number[i] = true
			return nil
		default:
			return r.wrongHole(offset, h)
		}
	}
	return r.explain(offset, at.text)
}
