package method

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/cabrank/cabrank/internal/schema"
)

const (
	// maxPlaceholderBytes bounds what stands between {{ and }}.
	maxPlaceholderBytes = 100
	// maxTemplateBytes bounds the text of a template: it is in memory as a whole.
	maxTemplateBytes = 64 << 20
	// maxDocuments bounds the requests that are used in turn.
	maxDocuments = 1_000_000
	// maxHoles bounds the placeholders of one document.
	maxHoles = 10_000
)

// template is a text with its placeholders found.
type template struct {
	name   string // for errors: a flag or a file
	text   []byte // as it was written
	holes  []hole // in the order of the text
	sample []byte // JSON of the same length, with ones in place of placeholders
}

// hole is where a placeholder stands.
//
// Units: begin and end are offsets in bytes.
type hole struct {
	placeholder

	begin, end int
}

// document is one JSON value of a template.
type document struct {
	*template

	begin, end int
}

// faultAt returns an error about a place, with line and column.
func (t *template) faultAt(offset int, form string, args ...any) error {
	before := t.text[:min(offset, len(t.text))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Errorf("%s:%d:%d: %s", t.name, line, column, fmt.Sprintf(form, args...))
}

// readTemplate finds the placeholders of a text.
func readTemplate(name string, text []byte) (*template, error) {
	if len(text) > maxTemplateBytes {
		return nil, fmt.Errorf("%s: has %d bytes, at most %d are allowed", name, len(text), maxTemplateBytes)
	}
	t := &template{name: name, text: text, sample: bytes.Clone(text)}
	for i := 0; i < len(text); i++ {
		switch rest := text[i:]; {
		case bytes.HasPrefix(rest, []byte(`\u`)):
			i += len(`\u1234`) - 1 // nothing may complete it
		case rest[0] == '\\':
			i++
		case bytes.HasPrefix(rest, []byte("{{")):
			end, err := t.readHole(i)
			if err != nil {
				return nil, err
			}
			i = end - 1
		}
	}
	return t, nil
}

// readHole takes the placeholder that begins at an offset and returns where it ends.
func (t *template) readHole(begin int) (end int, err error) {
	inside, _, closed := bytes.Cut(t.text[begin+2:min(len(t.text), begin+2+maxPlaceholderBytes)], []byte("}}"))
	if !closed || bytes.ContainsRune(inside, '\n') {
		return 0, t.faultAt(begin, "{{ begins a placeholder, and there is no }} on its line")
	}
	p, err := parsePlaceholder(string(inside))
	if err != nil {
		return 0, t.faultAt(begin, "%s", err)
	}
	end = begin + len(inside) + 4
	t.holes = append(t.holes, hole{placeholder: p, begin: begin, end: end})
	copy(t.sample[begin:end], bytes.Repeat([]byte("1"), end-begin))
	return end, nil
}

func (d document) isArray() bool { return d.sample[d.begin] == '[' }

// cut returns the values that stand side by side in a part of the text, by lines or not,
// or in the array that it is.
func (d document) cut(array bool) (all []document, err error) {
	decoder := json.NewDecoder(bytes.NewReader(d.sample[d.begin:d.end]))
	if array {
		_, _ = decoder.Token() // the bracket
	}
	for !array || decoder.More() {
		var value json.RawMessage
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) && !array {
			return all, nil
		} else if err != nil {
			return nil, d.notJSON(err)
		}
		end := d.begin + int(decoder.InputOffset())
		all = append(all, document{d.template, end - len(value), end})
		if len(all) > maxDocuments {
			return nil, fmt.Errorf("%s: has more than %d requests", d.name, maxDocuments)
		}
	}
	return all, nil
}

func (d document) notJSON(err error) error {
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return d.faultAt(d.begin+int(max(syntax.Offset-1, 0)), "not JSON: %s", schema.OneLine(syntax.Error()))
	}
	return d.faultAt(len(d.text), "not JSON: it ends in the middle of a value")
}

// inside returns the holes of a document.
func (d document) inside() []hole {
	before := func(h hole, offset int) int { return cmp.Compare(h.begin, offset) }
	first, _ := slices.BinarySearchFunc(d.holes, d.begin, before)
	last, _ := slices.BinarySearchFunc(d.holes, d.end, before)
	return d.holes[first:last]
}

// fill returns a document with values in place of its placeholders.
func (d document) fill(at spot) []byte {
	from, text := d.begin, make([]byte, 0, d.end-d.begin)
	for i, h := range d.inside() {
		at.hole = uint64(i)
		text = h.append(append(text, d.text[from:h.begin]...), at)
		from = h.end
	}
	return append(text, d.text[from:d.end]...)
}
