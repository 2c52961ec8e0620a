package socket

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// longText is how much of a message is read in one go: a longer one is read in parts,
// between which other sockets have their turn. A single text in it is one part.
const longText = 64 << 10

var (
	errTrailing = errors.New("something behind the object")
	errLongText = errors.New("a text of more than 64 KiB beside the arguments")
)

// walker goes through JSON without keeping it. It accepts what encoding/json accepts.
type walker struct {
	text   []byte
	tokens *jsontext.Decoder
	rest   func() // between the parts
	rested int64  // where the last part ended
}

func newWalker(text []byte, rest func()) *walker {
	return &walker{
		text: text, rest: rest,
		// A buffer is read in place.
		tokens: jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)),
	}
}

// value goes through one value, or the name of a member, and returns its text.
func (w *walker) value() ([]byte, error) {
	depth, begin := w.tokens.StackDepth(), w.tokens.InputOffset()
	for {
		if _, err := w.tokens.ReadToken(); err != nil {
			return nil, err
		}
		at := w.tokens.InputOffset()
		if at-w.rested > longText {
			w.rested = at
			w.rest()
		}
		if w.tokens.StackDepth() == depth {
			return bytes.TrimLeft(w.text[begin:at], " \t\r\n,:"), nil
		}
	}
}

// ended reports whether nothing follows.
func (w *walker) ended() bool {
	_, err := w.tokens.ReadToken()
	return errors.Is(err, io.EOF)
}

// isJSON reports whether a text is one value, as json.Valid does.
func isJSON(text []byte, rest func()) bool {
	w := newWalker(text, rest)
	_, err := w.value()
	return err == nil && w.ended()
}

// split takes the member with a name out of a long object, so that the rest is short: long
// arrays and objects in other members are left out, for no field is one. The last of several
// members with the name counts; the case of letters does not matter.
//
// Shape: short has the other members; value is a part of text, nil without such a member;
// behind is the text after the object.
// Errors: text is not an object, or another member has a long text.
func split(text []byte, name string, rest func()) (short, value, behind []byte, err error) {
	w := newWalker(text, rest)
	if w.tokens.PeekKind() != '{' {
		return nil, nil, nil, errObject
	}
	if _, err := w.tokens.ReadToken(); err != nil {
		return nil, nil, nil, err
	}
	short = []byte("{")
	for w.tokens.PeekKind() == '"' {
		key, is, err := w.name(name)
		if err != nil {
			return nil, nil, nil, err
		}
		v, err := w.value()
		switch {
		case err != nil:
			return nil, nil, nil, err
		case is:
			value = v
			continue
		case len(v) > longText && v[0] == '"':
			return nil, nil, nil, errLongText
		case len(v) > longText:
			v = []byte{v[0], v[len(v)-1]}
		}
		if len(short) > 1 {
			short = append(short, ',')
		}
		short = append(append(append(short, key...), ':'), v...)
	}
	if _, err := w.tokens.ReadToken(); err != nil {
		return nil, nil, nil, err
	}
	return append(short, '}'), value, text[w.tokens.InputOffset():], nil
}

// name reads the name of a member, and reports whether it is the wanted one.
func (w *walker) name(wanted string) (key []byte, is bool, err error) {
	begin := w.tokens.InputOffset()
	token, err := w.tokens.ReadToken()
	if err != nil {
		return nil, false, err
	}
	is = strings.EqualFold(token.String(), wanted)
	return bytes.TrimLeft(w.text[begin:w.tokens.InputOffset()], " \t\r\n,"), is, nil
}
