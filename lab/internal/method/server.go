package method

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/cabrank/cabrank/internal/schema"
)

// useFiles is what to do where reflection does not help.
const useFiles = "use --proto FILE"

// FromServer asks a server by reflection for a method. Types that a template names in
// an Any are asked for when it is read, so that the connection has to live until then.
//
// Units: the server has limit to answer everything, each time that it is asked.
// Errors: one line that says what to do: the server cannot be reached, has no
// reflection or does not answer in time; there is no such service or method, with the
// names that there are; what the server sends describes nothing.
// Source: grpc.reflection.v1, or v1alpha if the server has only that.
func FromServer(ctx context.Context, conn *grpc.ClientConn, method string, limit time.Duration) (*Method, error) {
	n, err := parseName(method)
	if err != nil {
		return nil, err
	}
	s := server{conn: conn, limit: limit}
	m, err := s.resolve(ctx, n)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", conn.Target(), err)
	}
	m.ask = s.describe
	return m, nil
}

// errNotSent is why a service is not described by a server that has answered.
var errNotSent = errors.New("it sent files without it")

// server is one that is asked for descriptions.
type server struct {
	conn  *grpc.ClientConn
	limit time.Duration
}

// conversation is one about what a server serves.
type conversation struct{ *schema.Reflection }

func (s server) begin() conversation {
	return conversation{schema.NewReflection(func(ctx context.Context, path string) (schema.Stream, error) {
		return s.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, path,
			grpc.MaxCallRecvMsgSize(schema.MaxBytes))
	})}
}

func (s server) resolve(ctx context.Context, n name) (*Method, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	r := s.begin()
	defer r.Close()
	m, err := r.resolve(ctx, n)
	return m, s.explain(ctx, err)
}

// describe returns the types of the file that has a message in it.
func (s server) describe(ctx context.Context, full protoreflect.FullName) (*dynamicpb.Types, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	r := s.begin()
	defer r.Close()
	set, err := r.Files(ctx, string(full))
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	files, err := schema.Link(set)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	return dynamicpb.NewTypes(files), nil
}

// explain says in one line why reflection failed, where its status alone does not.
func (s server) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
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
		return fmt.Errorf("reflection did not answer within %s: %s", s.limit, useFiles)
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

func (r conversation) resolve(ctx context.Context, n name) (*Method, error) {
	set, err := r.Files(ctx, n.service)
	if refused := (*schema.RefusedError)(nil); errors.As(err, &refused) {
		return nil, r.noService(ctx, n, refused)
	} else if err != nil {
		return nil, err
	}
	files, err := schema.Link(set)
	if err != nil {
		return nil, err
	}
	m, err := n.find(files)
	if errors.Is(err, errNoService) {
		return nil, r.noService(ctx, n, errNotSent)
	}
	return m, err
}

// noService tells why a service is not described: it is not there, or the server
// knows no more than its name.
func (r conversation) noService(ctx context.Context, n name, why error) error {
	known, err := r.Services(ctx)
	if err != nil {
		return fmt.Errorf("reflection does not describe %s (%w): %s", n.service, why, useFiles)
	}
	for _, service := range known {
		switch service {
		case n.service:
			return fmt.Errorf("the server has %s but does not describe it (%w): %s", n.service, why, useFiles)
		case n.whole():
			return r.noMethod(ctx, service)
		}
	}
	return fmt.Errorf("no service %s%s", n.service, among("services there", n.service, known))
}

// noMethod tells somebody who named a service alone what its methods are.
func (r conversation) noMethod(ctx context.Context, service string) error {
	list := ""
	if set, err := r.Files(ctx, service); err == nil {
		if files, err := schema.Link(set); err == nil {
			list = listMethods(files, service)
		}
	}
	return fmt.Errorf("%s is a service: write %s/METHOD%s", service, service, list)
}

func listMethods(files *protoregistry.Files, service string) string {
	found, _ := files.FindDescriptorByName(protoreflect.FullName(service))
	if described, ok := found.(protoreflect.ServiceDescriptor); ok {
		return among("its methods", "", names(described.Methods(), protoreflect.MethodDescriptor.Name))
	}
	return ""
}
