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

	"github.com/cabrank/cabrank/internal/schema"
)

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
	s := server{conn: conn, limit: limit}
	var m *Method
	err = s.ask(ctx, func(ctx context.Context, r conversation) (err error) {
		m, err = r.resolve(ctx, n)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", conn.Target(), err)
	}
	return m, nil
}

// server is one that is asked for descriptions.
type server struct {
	conn  *grpc.ClientConn
	limit time.Duration
}

// conversation is one about what a server serves.
type conversation struct{ *schema.Reflection }

// ask has a conversation, and says in one line why it failed, where its status alone does
// not.
func (s server) ask(ctx context.Context, about func(context.Context, conversation) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	r := conversation{schema.NewReflection(func(ctx context.Context, path string) (schema.Stream, error) {
		return s.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, path,
			grpc.MaxCallRecvMsgSize(schema.MaxBytes))
	})}
	defer r.Close()
	err := about(ctx, r)
	if wrong := (*schema.DescriptionError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("%w: %s", err, useFiles)
	}
	st, ours := status.FromError(err)
	switch text := schema.OneLine(st.Message()); {
	case err == nil || !ours:
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

func (r conversation) files(ctx context.Context, symbol string) (*protoregistry.Files, error) {
	set, err := r.Files(ctx, symbol)
	if err != nil {
		return nil, err
	}
	return schema.Link(set)
}

func (r conversation) resolve(ctx context.Context, n name) (*Method, error) {
	files, err := r.files(ctx, n.service)
	if refused := (*schema.RefusedError)(nil); errors.As(err, &refused) {
		return nil, r.noService(ctx, n, refused)
	} else if err != nil {
		return nil, err
	}
	m, err := n.find(files)
	if errors.Is(err, errNoService) {
		return nil, r.noService(ctx, n, errors.New("it sent files without it"))
	}
	return m, err
}

// noService tells why a service is not described: it is not there, or the server
// knows no more than its name.
func (r conversation) noService(ctx context.Context, n name, why error) error {
	known, err := r.Services(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("reflection does not describe %s (%w): %s", n.service, why, useFiles)
	case slices.Contains(known, n.service):
		return fmt.Errorf("the server has %s but does not describe it (%w): %s", n.service, why, useFiles)
	case slices.Contains(known, n.whole()):
		files, _ := r.files(ctx, n.whole()) // without them there is no list of methods
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
