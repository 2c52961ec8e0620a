package schema

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// mostDepth is how deep messages may be in each other, as protobuf has it in C++ and Java.
// An Any within an Any is read once for each around it: without a bound 400 KB take
// seconds.
const mostDepth = 100

// Method is one method of a service.
//
// Concurrency: immutable.
type Method struct {
	// CallerStreams and ServerStreams say who sends any number of messages.
	CallerStreams, ServerStreams bool
	// ChangesNothing is the option idempotency_level = NO_SIDE_EFFECTS.
	ChangesNothing bool

	input, output protoreflect.MessageDescriptor
	types         *types
}

// AppendRequest appends the message that a JSON value stands for; nil and null are one
// without fields.
//
// Errors: one line, which names the field that is wrong.
func (m *Method) AppendRequest(b []byte, value []byte) (out []byte, err error) {
	defer guard(&err)
	message := dynamicpb.NewMessage(m.input)
	if len(value) > 0 && !bytes.Equal(value, []byte("null")) {
		options := protojson.UnmarshalOptions{DiscardUnknown: true, Resolver: m.types, RecursionLimit: mostDepth}
		if err := options.Unmarshal(value, message); err != nil {
			return b, fmt.Errorf("%s: %s", m.input.FullName(), OneLine(Plain(err)))
		}
	}
	out, err = proto.MarshalOptions{}.MarshalAppend(b, message)
	if err != nil {
		return b, fmt.Errorf("%s: %s", m.input.FullName(), OneLine(Plain(err)))
	}
	return out, nil
}

// AppendAnswer appends the JSON that a message of the answer is.
//
// Errors: one line: the bytes are no such message, or have something that the schema
// does not.
func (m *Method) AppendAnswer(b []byte, encoded []byte) (out []byte, err error) {
	defer guard(&err)
	message := dynamicpb.NewMessage(m.output)
	if err := (proto.UnmarshalOptions{Resolver: m.types, AllowPartial: true, RecursionLimit: mostDepth}).Unmarshal(encoded, message); err != nil {
		return b, fmt.Errorf("%s: %s", m.output.FullName(), OneLine(Plain(err)))
	}
	options := protojson.MarshalOptions{EmitDefaultValues: true, AllowPartial: true, Resolver: m.types}
	out, err = options.MarshalAppend(b, message)
	if err != nil {
		return b, fmt.Errorf("%s: %s", m.output.FullName(), OneLine(Plain(err)))
	}
	return append(out[:len(b)], withoutBlanks(out[len(b):])...), nil
}

var errDescription = errors.New("its description cannot be used")

// guard has a description that protobuf chokes on end one call, not the process.
func guard(err *error) {
	if recover() != nil {
		*err = errDescription
	}
}

// withoutBlanks takes the blanks out of JSON, in its place, that stand outside of texts:
// protojson writes some by chance.
func withoutBlanks(value []byte) []byte {
	out, quoted := value[:0], false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case quoted && c == '\\' && i+1 < len(value):
			out = append(out, c)
			i++
		case c == '"':
			quoted = !quoted
		case c == ' ' && !quoted:
			continue
		}
		out = append(out, value[i])
	}
	return out
}

// types are the messages that an Any may hold, and extensions: those of the files, and
// those of protobuf itself.
type types struct {
	*dynamicpb.Types

	empties sync.Map // int by protoreflect.FullName, of empty
	lacks   sync.Map // protoreflect.FullName of those that were looked for: of what they need and is not described, or ""
}

// undescribed is Undescribed, once for each type.
func (t *types) undescribed(m protoreflect.MessageDescriptor) protoreflect.FullName {
	if known, ok := t.lacks.Load(m.FullName()); ok {
		unknown, _ := known.(protoreflect.FullName)
		return unknown
	}
	unknown := Undescribed(m)
	t.lacks.Store(m.FullName(), unknown)
	return unknown
}

// FindMessageByName implements protojson's resolver.
func (t *types) FindMessageByName(name protoreflect.FullName) (protoreflect.MessageType, error) {
	if found, err := t.Types.FindMessageByName(name); err == nil {
		if unknown := t.undescribed(found.Descriptor()); unknown != "" {
			return nil, fmt.Errorf("%s needs %s, which is not described", name, unknown)
		}
		return found, nil
	}
	if strings.HasPrefix(string(name), "google.protobuf.") {
		return protoregistry.GlobalTypes.FindMessageByName(name)
	}
	return nil, protoregistry.NotFound
}

// FindMessageByURL is FindMessageByName for what stands behind the last slash.
func (t *types) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	return t.FindMessageByName(protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:]))
}

// methodsOf returns the methods of a service by their paths. It leaves out those with
// messages that are described nowhere.
func methodsOf(service protoreflect.ServiceDescriptor, known *types) map[string]*Method {
	all := map[string]*Method{}
	for i := range service.Methods().Len() {
		m := service.Methods().Get(i)
		if known.undescribed(m.Input()) != "" || known.undescribed(m.Output()) != "" {
			continue
		}
		all["/"+string(service.FullName())+"/"+string(m.Name())] = &Method{
			CallerStreams: m.IsStreamingClient(), ServerStreams: m.IsStreamingServer(), ChangesNothing: changesNothing(m),
			input: m.Input(), output: m.Output(), types: known,
		}
	}
	return all
}

func changesNothing(m protoreflect.MethodDescriptor) bool {
	options, ok := m.Options().(*descriptorpb.MethodOptions)
	return ok && options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
}
