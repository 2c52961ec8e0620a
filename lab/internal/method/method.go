// Package method finds out what a gRPC method takes and makes the bytes of its
// requests, so that any service can be put under load without generated code.
//
// FromServer and FromFiles describe a Method: by server reflection, or by .proto files.
// Method.Requests reads a template, JSON with placeholders, and gives Requests, which tell the
// encoded messages of each call by its number; package caller sends them. It makes no call but
// those of reflection, and runs nothing that a template says.
//
// A template is cut into JSON documents (template.go), each of which is read with the least
// and with the greatest values in place of its placeholders. A document without any is
// encoded then; any other is filled in and read for each call.
package method

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/cabrank/cabrank/internal/schema"
	"github.com/cabrank/cabrank/internal/spelling"
)

// Method is one method of a service with all that it takes to make its requests.
// It never changes.
type Method struct {
	Path string // as it is called: "/pkg.Service/Method"
	// ClientStreams and ServerStreams say who sends any number of messages in a call; others
	// send one.
	ClientStreams, ServerStreams bool

	input protoreflect.MessageDescriptor
	known *dynamicpb.Types // the types of the files that describe it
}

// Kind returns the words that reports use.
func (m *Method) Kind() string {
	switch {
	case m.ClientStreams && m.ServerStreams:
		return "bidi"
	case m.ClientStreams:
		return "client stream"
	case m.ServerStreams:
		return "server stream"
	}
	return "unary"
}

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

// whole returns the name with dots: what the service is called if its method was left out.
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
		Path:          "/" + n.service + "/" + n.method,
		ClientStreams: m.IsStreamingClient(), ServerStreams: m.IsStreamingServer(),
		input: m.Input(), known: dynamicpb.NewTypes(files),
	}, nil
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

// useFiles is what to do where reflection does not help.
const useFiles = "use --proto FILE"

// FromServer asks a server by reflection for a method.
//
// Units: the server has limit to answer everything.
// Errors: one line that says what to do: the server cannot be reached, has no
// reflection or does not answer in time; there is no such service or method, with the
// names that there are; what the server sends describes nothing.
// Source: grpc.reflection.v1, or v1alpha if the server has only that.
func FromServer(ctx context.Context, conn *grpc.ClientConn, method string, limit time.Duration) (*Method, error) {
	n, err := parseName(method)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r := schema.NewReflection(func(ctx context.Context, path string) (schema.Stream, error) {
		return conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, path,
			grpc.MaxCallRecvMsgSize(schema.MaxBytes))
	})
	defer r.Close()
	m, err := n.resolve(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", conn.Target(), explain(ctx, err, limit))
	}
	return m, nil
}

// explain says in one line why a server was not understood, where its status alone does not.
func explain(ctx context.Context, err error, limit time.Duration) error {
	if wrong := (*schema.DescriptionError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("%w: %s", err, useFiles)
	}
	st, ours := status.FromError(err)
	switch text := schema.OneLine(st.Message()); {
	case !ours:
		return err
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Canceled
	case st.Code() == codes.DeadlineExceeded:
		return fmt.Errorf("reflection did not answer within %s: %s", limit, useFiles)
	case st.Code() == codes.Unimplemented:
		return fmt.Errorf("the server has no reflection: %s", useFiles)
	case st.Code() == codes.Unavailable:
		return fmt.Errorf("cannot be reached: %s", text)
	case st.Code() == codes.ResourceExhausted && strings.Contains(text, "larger than max"):
		return fmt.Errorf("the server describes itself in more than %d MiB: %s", schema.MaxBytes>>20, useFiles)
	default:
		return fmt.Errorf("reflection ended with %s: %s; %s", st.Code(), text, useFiles)
	}
}

func filesOf(ctx context.Context, r *schema.Reflection, symbol string) (*protoregistry.Files, error) {
	set, err := r.Files(ctx, symbol)
	if err != nil {
		return nil, err
	}
	return schema.Link(set)
}

func (n name) resolve(ctx context.Context, r *schema.Reflection) (*Method, error) {
	files, err := filesOf(ctx, r, n.service)
	if refused := (*schema.RefusedError)(nil); errors.As(err, &refused) {
		return nil, n.noService(ctx, r, refused)
	} else if err != nil {
		return nil, err
	}
	m, err := n.find(files)
	if errors.Is(err, errNoService) {
		return nil, n.noService(ctx, r, errors.New("it sent files without it"))
	}
	return m, err
}

// noService tells why a service is not described: it is not there, or the server
// knows no more than its name.
func (n name) noService(ctx context.Context, r *schema.Reflection, why error) error {
	known, err := r.Services(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("reflection does not describe %s (%w): %s", n.service, why, useFiles)
	case slices.Contains(known, n.service):
		return fmt.Errorf("the server has %s but does not describe it (%w): %s", n.service, why, useFiles)
	case slices.Contains(known, n.whole()):
		files, _ := filesOf(ctx, r, n.whole()) // without them there is no list of methods
		return n.isService(files)
	}
	return fmt.Errorf("no service %s%s", n.service, among("services there", n.service, known))
}

// isService tells somebody who named a service alone what its methods are.
func (n name) isService(files *protoregistry.Files) error {
	found, _ := files.FindDescriptorByName(protoreflect.FullName(n.whole()))
	list := ""
	if service, ok := found.(protoreflect.ServiceDescriptor); ok {
		list = among("its methods", "", names(service.Methods(), protoreflect.MethodDescriptor.Name))
	}
	return fmt.Errorf("%s is a service: write %s/METHOD%s", n.whole(), n.whole(), list)
}
