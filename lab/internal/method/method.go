package method

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/cabrank/cabrank/internal/schema"
	"github.com/cabrank/cabrank/internal/spelling"
)

// Kind says who sends several messages in a call of a method.
type Kind uint8

// The four kinds of gRPC.
const (
	Unary        Kind = 0 // one message each way
	ClientStream Kind = 1 // the caller sends any number of messages
	ServerStream Kind = 2 // the server does
	Bidi         Kind = 3 // both do
)

// String returns the words that reports use.
func (k Kind) String() string {
	return [...]string{"unary", "client stream", "server stream", "bidi"}[k&Bidi]
}

// CallerStreams reports whether a call has a list of request messages, not one.
func (k Kind) CallerStreams() bool { return k&ClientStream != 0 }

// ServerStreams reports whether a call has any number of replies.
func (k Kind) ServerStreams() bool { return k&ServerStream != 0 }

// Method is one method of a service with all that it takes to make its requests.
// It never changes.
type Method struct {
	Path string // as it is called: "/pkg.Service/Method"
	Kind Kind

	input protoreflect.MessageDescriptor
	// known are the types of the files that describe it.
	known *dynamicpb.Types
}

// Input returns the full name of the request message.
func (m *Method) Input() string { return string(m.input.FullName()) }

// name is a method as people write it, taken apart.
type name struct{ service, method string }

// parseName reads the name of a method.
//
// Shape: pkg.Service/Method, /pkg.Service/Method or pkg.Service.Method. The last
// one may turn out to be a service without a method.
func parseName(text string) (name, error) {
	rest := strings.TrimPrefix(text, "/")
	cut := strings.LastIndexByte(rest, '/')
	if cut < 0 {
		cut = strings.LastIndexByte(rest, '.')
	}
	n := name{service: rest[:max(cut, 0)], method: rest[cut+1:]}
	if !protoreflect.FullName(n.service).IsValid() || !protoreflect.Name(n.method).IsValid() {
		return name{}, fmt.Errorf("method %q: write pkg.Service/Method", schema.OneLine(text))
	}
	return n, nil
}

// whole returns the name with dots: what the service is called if its method was
// left out.
func (n name) whole() string { return n.service + "." + n.method }

// FromRegistry finds a method in files that are known already, such as those that are
// linked into this program.
//
// Errors: one line; a service that is not there is told as such.
func FromRegistry(files *protoregistry.Files, method string) (*Method, error) {
	n, err := parseName(method)
	if err != nil {
		return nil, err
	}
	m, err := n.find(files)
	if errors.Is(err, errNoService) {
		return nil, fmt.Errorf("there is no service %s", n.service)
	}
	return m, err
}

// errNoService says that a registry does not have the service; which there are is
// for the caller to tell.
var errNoService = errors.New("no such service")

// find returns the method from files that should describe it.
//
// Errors: errNoService; one that lists the methods of the service; one that names
// a type that is described nowhere.
func (n name) find(files *protoregistry.Files) (*Method, error) {
	found, err := files.FindDescriptorByName(protoreflect.FullName(n.service))
	service, ok := found.(protoreflect.ServiceDescriptor)
	if err != nil || !ok {
		return nil, errNoService
	}
	m := service.Methods().ByName(protoreflect.Name(n.method))
	if m == nil {
		return nil, fmt.Errorf("%s has no method %s%s", n.service, n.method, among("its methods", n.method, names(service.Methods(), protoreflect.MethodDescriptor.Name)))
	}
	if unknown := schema.Undescribed(m.Input()); unknown != "" {
		return nil, fmt.Errorf("%s/%s: its request needs %s, which no file describes", n.service, n.method, unknown)
	}
	return &Method{
		Path:  "/" + n.service + "/" + n.method,
		Kind:  kindOf(m),
		input: m.Input(),
		known: dynamicpb.NewTypes(files),
	}, nil
}

func kindOf(m protoreflect.MethodDescriptor) (k Kind) {
	if m.IsStreamingClient() {
		k |= ClientStream
	}
	if m.IsStreamingServer() {
		k |= ServerStream
	}
	return k
}

func names[D any, S ~string](all interface {
	Len() int
	Get(i int) D
}, of func(D) S) (list []string) {
	for i := range all.Len() {
		list = append(list, string(of(all.Get(i))))
	}
	return list
}

// among ends an error about a wrong name with those that are right: nearest first, or
// in their order if there was no name.
func among(what, wrong string, known []string) string {
	const most = 8
	if len(known) == 0 {
		return ""
	}
	sorted, rest := slices.Clone(known), ""
	if wrong != "" {
		sorted = spelling.Sorted(wrong, known)
	}
	if len(sorted) > most {
		rest = fmt.Sprintf(", and %d more", len(sorted)-most)
		sorted = sorted[:most]
	}
	for i, one := range sorted {
		sorted[i] = schema.OneLine(one)
	}
	return "; " + what + ": " + strings.Join(sorted, ", ") + rest
}
