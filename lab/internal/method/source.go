package method

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cabrank/cabrank/internal/schema"
)

const (
	// maxTemplateBytes bounds the text of a template: it is in memory as a whole.
	maxTemplateBytes = 64 << 20
	// maxDocuments bounds the requests that are used in turn.
	maxDocuments = 1_000_000
	// maxHoles bounds the placeholders of one document. Each has a mark of its own.
	maxHoles = 10_000
)

// source is the text of a template with its placeholders found.
type source struct {
	name   string // for errors: a flag or a file
	text   []byte // as it was written
	masked []byte // JSON of the same length: 1111 in place of each placeholder
	holes  []hole // in the order of the text
}

// hole is where a placeholder stands.
//
// Units: begin, end and quote are offsets in bytes.
type hole struct {
	placeholder

	begin, end int
	quote      int // the quote that opens the string it stands in, -1 outside of strings
}

// document is one JSON value of a source.
type document struct {
	*source

	begin, end int
}

// faultAt returns an error about a place, with line and column.
func (s *source) faultAt(offset int, form string, args ...any) error {
	before := s.text[:min(offset, len(s.text))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Errorf("%s:%d:%d: %s", s.name, line, column, fmt.Sprintf(form, args...))
}

// readSource finds the placeholders of a text.
func readSource(name string, text []byte) (*source, error) {
	s := &source{name: name, text: text, masked: bytes.Clone(text)}
	if len(text) > maxTemplateBytes {
		return nil, fmt.Errorf("%s: has %d bytes, at most %d are allowed", name, len(text), maxTemplateBytes)
	}
	quote := -1
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '{' && bytes.HasPrefix(text[i:], []byte("{{")):
			end, err := s.readHole(i, quote)
			if err != nil {
				return nil, err
			}
			i = end - 1
		case text[i] == '\\' && quote >= 0:
			i++
		case text[i] == '"' && quote >= 0:
			if err := s.refuseNames(quote, i); err != nil {
				return nil, err
			}
			quote = -1
		case text[i] == '"':
			quote = i
		}
	}
	return s, nil
}

// readHole takes the placeholder that begins at an offset and returns where it ends.
func (s *source) readHole(begin, quote int) (int, error) {
	inside, _, closed := bytes.Cut(s.text[begin+2:min(len(s.text), begin+2+maxPlaceholderBytes)], []byte("}}"))
	if !closed || bytes.ContainsRune(inside, '\n') {
		return 0, s.faultAt(begin, "{{ begins a placeholder, and there is no }} on its line")
	}
	p, err := parsePlaceholder(string(inside))
	if err != nil {
		return 0, s.faultAt(begin, "%s", err)
	}
	end := begin + len(inside) + 4
	switch alone := s.isAlone(begin, end); {
	case quote < 0 && !p.isNumber():
		return 0, s.faultAt(begin, "%s is a text: put it in quotes", p)
	case quote < 0 && !alone:
		return 0, s.faultAt(begin, "%s is a whole number: no digits can stand beside it", p)
	}
	s.holes = append(s.holes, hole{placeholder: p, begin: begin, end: end, quote: quote})
	copy(s.masked[begin:end], strings.Repeat("1", end-begin))
	return end, nil
}

// isAlone reports whether a part of the text has no neighbor that would be one value
// with it outside of strings.
func (s *source) isAlone(begin, end int) bool {
	const apart = " \t\r\n,:[]{}"
	return (begin == 0 || strings.IndexByte(apart, s.text[begin-1]) >= 0) &&
		(end == len(s.text) || strings.IndexByte(apart, s.text[end]) >= 0 && !bytes.HasPrefix(s.text[end:], []byte("{{")))
}

// refuseNames complains if a string that has placeholders in it names a field.
func (s *source) refuseNames(quote, end int) error {
	if len(s.holes) == 0 || s.holes[len(s.holes)-1].quote != quote {
		return nil
	}
	if rest := bytes.TrimLeft(s.text[end+1:], " \t\r\n"); bytes.HasPrefix(rest, []byte(":")) {
		return s.faultAt(s.holes[len(s.holes)-1].begin, "a placeholder is for values: it cannot be in a name or a key")
	}
	return nil
}

// documents cuts a source into its JSON values: one behind the other, by lines or
// not.
func (s *source) documents() ([]document, error) {
	return s.cut(document{s, 0, len(s.text)}, false)
}

// elements returns the values of an array.
func (d document) elements() ([]document, error) { return d.cut(d, true) }

// isArray reports whether a document is a list.
func (d document) isArray() bool { return d.masked[d.begin] == '[' }

// cut returns the values that stand side by side in a part of the text, or in the
// array that it is.
func (s *source) cut(whole document, array bool) ([]document, error) {
	decoder := json.NewDecoder(bytes.NewReader(s.masked[whole.begin:whole.end]))
	if array {
		if _, err := decoder.Token(); err != nil {
			return nil, s.notJSON(whole.begin, err)
		}
	}
	var all []document
	for !array || decoder.More() {
		var value json.RawMessage
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) && !array {
			return all, nil
		} else if err != nil {
			return nil, s.notJSON(whole.begin, err)
		}
		end := whole.begin + int(decoder.InputOffset())
		all = append(all, document{s, end - len(value), end})
		if len(all) > maxDocuments {
			return nil, fmt.Errorf("%s: has more than %d requests", s.name, maxDocuments)
		}
	}
	return all, nil
}

func (s *source) notJSON(from int, err error) error {
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return s.faultAt(from+int(max(syntax.Offset-1, 0)), "not JSON: %s", schema.OneLine(syntax.Error()))
	}
	return s.faultAt(len(s.text), "not JSON: it ends in the middle of a value")
}

// inside returns the holes of a document.
func (d document) inside() []hole {
	before := func(h hole, offset int) int { return cmp.Compare(h.begin, offset) }
	first, _ := slices.BinarySearchFunc(d.holes, d.begin, before)
	last, _ := slices.BinarySearchFunc(d.holes, d.end, before)
	return d.holes[first:last]
}
