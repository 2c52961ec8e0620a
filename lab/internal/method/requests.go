package method

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxMessages bounds the messages that the caller sends in one call.
const maxMessages = 100_000

// Data is what requests are made of.
type Data struct {
	// Name is where the text is from, for errors: a flag or a file.
	Name string
	// Text is JSON in protobuf's mapping, with placeholders (docs/lab-load.md). A method
	// to which the caller sends one message takes an object, or several in a list or one
	// behind the other, which are used in turn; one to which it streams takes a list of
	// messages, or several lists.
	Text []byte
	// Seed chooses the random values: calls of the same number are the same for the same
	// seed.
	Seed uint64
	// Messages is how many messages the caller sends in a call of a stream: the list is
	// repeated or cut. Zero means as many as are listed.
	Messages int
}

// Requests are the messages of every call. It never changes: any number of goroutines
// may use it.
type Requests struct {
	seed  uint64
	calls []call // in turn
	input protoreflect.MessageDescriptor
	types *lookup
}

// call is the messages of one call.
type call struct {
	messages []message
	ready    [][]byte // nil if there is a placeholder
	size     int      // of all messages, at most
}

// Requests reads a template for requests of the method.
//
// Errors: one line that says where and what: text that is not JSON, a field that the
// message does not have, a value of the wrong type, a placeholder that is unknown or
// cannot stand where it does.
func (m *Method) Requests(ctx context.Context, data Data) (*Requests, error) {
	if data.Messages != 0 && !m.Kind.CallerStreams() {
		return nil, fmt.Errorf("%s is %s: a call has one request message, not %d", m.Path, m.Kind, data.Messages)
	}
	if data.Messages < 0 || data.Messages > maxMessages {
		return nil, fmt.Errorf("%d messages in a call: at most %d are allowed", data.Messages, maxMessages)
	}
	s, err := readSource(data.Name, data.Text)
	if err != nil {
		return nil, err
	}
	lists, err := m.lists(s)
	if err != nil {
		return nil, err
	}
	types := m.types.during(ctx)
	r := &Requests{seed: data.Seed, input: m.input, types: types}
	for _, list := range lists {
		one, err := m.newCall(list, types, data)
		if err != nil {
			return nil, err
		}
		r.calls = append(r.calls, one)
	}
	return r, nil
}

// lists returns the documents of each call.
func (m *Method) lists(s *source) ([][]document, error) {
	documents, err := s.documents()
	if err != nil {
		return nil, err
	}
	var lists [][]document
	for _, d := range documents {
		inside := []document{d}
		if d.isArray() {
			if inside, err = d.elements(); err != nil {
				return nil, err
			}
		}
		if !m.Kind.CallerStreams() || areArrays(inside) {
			for _, one := range inside {
				list, err := m.list(one)
				if err != nil {
					return nil, err
				}
				lists = append(lists, list)
			}
			continue
		}
		lists = append(lists, inside)
	}
	if len(lists) == 0 {
		return nil, fmt.Errorf("%s: there is no request in it; {} is an empty one", s.name)
	}
	return lists, nil
}

// list returns the messages of a call that is one value of a list.
func (m *Method) list(d document) ([]document, error) {
	if !m.Kind.CallerStreams() {
		return []document{d}, nil
	}
	return d.elements()
}

func areArrays(all []document) bool {
	for _, d := range all {
		if !d.isArray() {
			return false
		}
	}
	return len(all) > 0
}

func (m *Method) newCall(list []document, types *lookup, data Data) (call, error) {
	c := call{}
	for _, d := range list {
		read, err := d.read(m.input, types)
		if err != nil {
			return call{}, err
		}
		c.messages = append(c.messages, read)
	}
	if len(c.messages) > maxMessages {
		return call{}, fmt.Errorf("%s: a call with more than %d messages", data.Name, maxMessages)
	}
	if data.Messages > 0 {
		if len(c.messages) == 0 {
			return call{}, fmt.Errorf("%s: a call without a message cannot be repeated to have %d", data.Name, data.Messages)
		}
		listed := c.messages
		c.messages = make([]message, data.Messages)
		for i := range c.messages {
			c.messages[i] = listed[i%len(listed)]
		}
	}
	c.finish()
	return c, nil
}

// finish notes what does not change from call to call.
func (c *call) finish() {
	constant := true
	for _, one := range c.messages {
		constant = constant && one.parts == nil
		if one.parts != nil {
			c.size += one.size
		}
	}
	if !constant {
		return
	}
	c.ready = make([][]byte, len(c.messages))
	for i, one := range c.messages {
		c.ready[i] = one.ready
	}
}

// Messages returns the encoded messages of a call by its number, which counts from 0:
// one, unless the caller streams.
//
// Concurrency: nobody may change what is returned: calls without placeholders share it.
// A client may keep it for as long as it likes.
func (r *Requests) Messages(number uint64) [][]byte {
	c := &r.calls[number%uint64(len(r.calls))]
	if c.ready != nil {
		return c.ready
	}
	buffer := make([]byte, 0, c.size)
	messages := make([][]byte, len(c.messages))
	for i := range c.messages {
		m := &c.messages[i]
		if m.parts == nil {
			messages[i] = m.ready
			continue
		}
		begin := len(buffer)
		buffer = appendParts(buffer, m.parts, spot{seed: r.seed, call: number, message: uint64(i)})
		messages[i] = buffer[begin:len(buffer):len(buffer)]
	}
	return messages
}
