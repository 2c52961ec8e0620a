package methods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/schema"
)

// mostDescription is the most bytes of all that workers say in one conversation. Read, it
// takes ten times as much memory, and up to 80 times if that is what a worker is after. An
// API that is larger can be in files.
const mostDescription = 16 << 20

// Reflection returns how a Schema asks the workers of a relay: by calls of this process,
// which any worker that is ready answers outside of its slots. Without one they wait for
// it like any call.
func Reflection(r *relay.Relay) schema.Opener {
	local := r.ServeLocal(callers.Caller{Door: Door})
	return func(ctx context.Context, path string) (schema.Stream, error) {
		s := &conversation{budget: budget{most: 2 * mostDescription}, left: mostDescription}
		s.in = grpcwire.Messages{From: &s.call, Budget: &s.budget, Most: mostDescription}
		left := time.Hour
		if deadline, ok := ctx.Deadline(); ok {
			left = time.Until(deadline)
		}
		if err := local.Open(&s.call, relay.LocalRequest{Head: head(&broker.Caller{}, path, left)}); err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
		context.AfterFunc(ctx, s.close)
		return s, nil
	}
}

// conversation is a call in which both sides send messages (schema.Stream).
type conversation struct {
	call   relay.LocalCall
	budget budget

	mu     sync.Mutex // held while the call is in use
	in     grpcwire.Messages
	left   int // bytes of messages that may still come
	closed bool
}

func errConversation() error { return status.Error(codes.Canceled, "the conversation has ended") }

func errNoMessage() error { return status.Error(codes.Internal, "no message of protobuf") }

func (s *conversation) close() {
	s.call.Cancel() // whoever reads goes on
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.call.Close()
}

// SendMsg sends a proto.Message.
func (s *conversation) SendMsg(m any) error {
	message, ok := m.(proto.Message)
	if !ok {
		return errNoMessage()
	}
	body, err := proto.Marshal(message)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errConversation()
	}
	prefix := grpcwire.AppendPrefix(nil, grpcwire.Prefix{Length: uint32(len(body))})
	_, err = s.call.Write(append(prefix, body...))
	return err
}

// RecvMsg takes a message into a proto.Message.
func (s *conversation) RecvMsg(m any) error {
	message, ok := m.(proto.Message)
	if !ok {
		return errNoMessage()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errConversation()
	}
	body, err := next(&s.in)
	s.left -= len(body)
	switch f := (*failure)(nil); {
	case err == nil && s.left < 0:
		return status.Error(codes.ResourceExhausted, fmt.Sprintf("workers describe themselves in more than %d MiB", mostDescription>>20))
	case err == nil:
		if err := proto.Unmarshal(body, message); err != nil {
			return status.Error(codes.Internal, err.Error())
		}
		return nil
	case errors.As(err, &f):
		return status.Error(codes.Code(f.code), f.message)
	}
	code, why := s.call.Status()
	if code == grpcwire.OK && errors.Is(err, io.EOF) {
		return io.EOF
	}
	return status.Error(codes.Code(code), why)
}
