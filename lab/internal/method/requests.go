package method

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/cabrank/cabrank/internal/schema"
)

const (
	maxMessages = 100_000 // bounds the messages that the caller sends in one call
	maxDepth    = 1_000   // messages in messages; most servers refuse more than 100
)

// Data is what requests are made of.
type Data struct {
	Name string // where the text is from, for errors: a flag or a file
	// Text is JSON in protobuf's mapping, with placeholders (docs/lab-load.md). A method to which
	// the caller sends one message takes an object, or several in a list or one behind the other,
	// which are used in turn; one to which it streams takes a list of messages, or several lists.
	Text []byte
	Seed uint64 // chooses the random values: the same seed, the same calls
	// Messages is how many messages the caller sends in a call of a stream: the list is
	// repeated or cut. Zero means as many as are listed.
	Messages int
	// JSON has messages written as JSON in protobuf's mapping, without spaces, not in
	// protobuf's encoding.
	JSON bool
}

// Requests are the messages of every call. It never changes: any number of goroutines may use it.
type Requests struct {
	Data

	method *Method
	calls  []call // in turn
}

type call struct {
	messages []message
	ready    [][]byte // nil if there is a placeholder
}

type message struct {
	ready    []byte // nil if there is a placeholder
	template document
}

// Requests reads a template for requests of the method.
//
// Errors: one line that says where and what: text that is not JSON, a field that the
// message does not have, a value of the wrong type, a placeholder that is unknown, or of which
// the least or the greatest value does not fit.
func (m *Method) Requests(data Data) (*Requests, error) {
	if data.Messages != 0 && !m.ClientStreams {
		return nil, fmt.Errorf("%s is %s: a call has one request message, not %d", m.Path, m.Kind(), data.Messages)
	}
	if data.Messages < 0 || data.Messages > maxMessages {
		return nil, fmt.Errorf("%d messages in a call: at most %d are allowed", data.Messages, maxMessages)
	}
	t, err := readTemplate(data.Name, data.Text)
	if err != nil {
		return nil, err
	}
	lists, err := m.lists(t)
	if err != nil {
		return nil, err
	}
	r := &Requests{Data: data, method: m}
	for _, list := range lists {
		c, err := r.newCall(list)
		if err != nil {
			return nil, err
		}
		r.calls = append(r.calls, c)
	}
	return r, nil
}

// lists returns the documents of each call.
func (m *Method) lists(t *template) (lists [][]document, err error) {
	documents, err := document{t, 0, len(t.text)}.cut(false)
	if err != nil {
		return nil, err
	}
	for _, d := range documents {
		inside := []document{d}
		if d.isArray() {
			if inside, err = d.cut(true); err != nil {
				return nil, err
			}
		}
		if m.ClientStreams && (len(inside) == 0 || slices.ContainsFunc(inside, func(d document) bool { return !d.isArray() })) {
			lists = append(lists, inside)
			continue
		}
		for _, one := range inside {
			list := []document{one}
			if m.ClientStreams {
				if list, err = one.cut(true); err != nil {
					return nil, err
				}
			}
			lists = append(lists, list)
		}
	}
	if len(lists) == 0 {
		return nil, fmt.Errorf("%s: there is no request in it; {} is an empty one", t.name)
	}
	return lists, nil
}

func (r *Requests) newCall(list []document) (c call, err error) {
	count := r.Data.Messages
	switch {
	case count > 0 && len(list) == 0:
		return c, fmt.Errorf("%s: a call without a message cannot be repeated to have %d", r.Name, count)
	case len(list) > maxMessages:
		return c, fmt.Errorf("%s: a call with more than %d messages", r.Name, maxMessages)
	case count == 0:
		count = len(list)
	}
	listed, constant := make([]message, len(list)), true
	for i, d := range list {
		if listed[i], err = r.read(d); err != nil {
			return c, err
		}
	}
	for i := range count {
		m := listed[i%len(list)]
		c.messages, c.ready = append(c.messages, m), append(c.ready, m.ready)
		constant = constant && m.ready != nil
	}
	if !constant {
		c.ready = nil
	}
	return c, nil
}

// read takes a document for a message, if it is one with the least values in place of its
// placeholders, and with the greatest.
func (r *Requests) read(d document) (message, error) {
	if len(d.inside()) > maxHoles {
		return message{}, d.faultAt(d.begin, "a request with more than %d placeholders", maxHoles)
	}
	for _, end := range []edge{least, greatest} {
		filled := d.fill(spot{edge: end})
		m, err := r.parse(filled)
		if err != nil {
			_, err = r.parse(append(blank(d.text[:d.begin]), filled...)) // which says where it is in the whole text
			return message{}, errors.New(d.name + ":" + position.ReplaceAllString(" "+schema.OneLine(schema.Plain(err)), "$1: "))
		}
		if len(d.inside()) == 0 {
			encoded, err := r.encode(m)
			return message{ready: encoded}, err
		}
	}
	return message{template: d}, nil
}

// position is how protojson says where something is.
var position = regexp.MustCompile(`^ .*\(line (\d+:\d+)\): `)

// blank is a text of the same lines and columns with nothing in it.
func blank(text []byte) []byte {
	return bytes.Map(func(c rune) rune {
		if c == '\n' {
			return c
		}
		return ' '
	}, text)
}

func (r *Requests) parse(text []byte) (*dynamicpb.Message, error) {
	m := dynamicpb.NewMessage(r.method.input)
	return m, protojson.UnmarshalOptions{Resolver: r.method.known, RecursionLimit: maxDepth}.Unmarshal(text, m)
}

func (r *Requests) encode(m *dynamicpb.Message) ([]byte, error) {
	if !r.JSON {
		return proto.MarshalOptions{Deterministic: true}.Marshal(m)
	}
	written, err := protojson.MarshalOptions{Resolver: r.method.known}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var tight bytes.Buffer // protojson's spaces differ from build to build
	err = json.Compact(&tight, written)
	return tight.Bytes(), err
}

// Messages returns the encoded messages of a call by its number, which counts from 0:
// one, unless the caller streams. It is nil where a value between the least and the greatest
// makes no request, such as a second key of the same name.
//
// Concurrency: nobody may change what is returned: calls without placeholders share it.
// A client may keep it for as long as it likes.
func (r *Requests) Messages(number uint64) [][]byte {
	c := &r.calls[number%uint64(len(r.calls))]
	if c.ready != nil {
		return c.ready
	}
	all := make([][]byte, len(c.messages))
	for i, m := range c.messages {
		if all[i] = m.ready; m.ready != nil {
			continue
		}
		filled, err := r.parse(m.template.fill(spot{seed: r.Seed, call: number, message: uint64(i)}))
		if err == nil {
			all[i], err = r.encode(filled)
		}
		if err != nil {
			return nil
		}
	}
	return all
}
