package schema

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

const (
	// MaxFiles bounds what a server may send to describe what is asked for: a large
	// company's whole API has a tenth of it.
	MaxFiles = 4_000
	// MaxBytes bounds the same.
	MaxBytes = 64 << 20

	// v1alpha has the messages of v1 under another name.
	v1      = pb.ServerReflection_ServerReflectionInfo_FullMethodName
	v1alpha = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
)

// Stream is a call in which both sides send messages. Those of grpc-go are one.
//
// Errors: io.EOF of SendMsg says that RecvMsg tells why the call has ended; any other
// is a status.
type Stream interface {
	// SendMsg sends a proto.Message.
	SendMsg(m any) error
	// RecvMsg takes one into m.
	RecvMsg(m any) error
}

// Opener begins a call of a method. It ends with the context.
type Opener func(ctx context.Context, path string) (Stream, error)

// RefusedError is a server's answer that it has not what was asked for.
type RefusedError struct{ text string }

// Error implements error.
func (e *RefusedError) Error() string { return e.text }

// DescriptionError says what is wrong with a description.
type DescriptionError struct{ text string }

// Error implements error.
func (e *DescriptionError) Error() string { return e.text }

// Reflection is a conversation with a server about what it serves, in v1 of the
// protocol, or v1alpha if the server has only that.
//
// Life: NewReflection, any questions, Close.
// Errors: of all questions: RefusedError, DescriptionError, or the status with which the
// call has ended, which is Unimplemented for a server without reflection.
// Concurrency: of one goroutine at a time.
// Source: grpc.reflection.v1.
type Reflection struct {
	open   Opener
	stream Stream // nil before the first question
	end    context.CancelFunc
	old    bool // v1alpha
}

// NewReflection returns a conversation that has not begun.
func NewReflection(open Opener) *Reflection { return &Reflection{open: open} }

// Close ends the conversation.
func (r *Reflection) Close() {
	if r.end != nil {
		r.end()
	}
}

// ask has one question answered, over v1alpha if the server does not have v1.
func (r *Reflection) ask(ctx context.Context, question *pb.ServerReflectionRequest) (*pb.ServerReflectionResponse, error) {
	first := r.stream == nil
	answer, err := r.exchange(ctx, question)
	if first && !r.old && mayHaveOld(err) {
		answer, err = r.askOld(ctx, question, err)
	}
	if err != nil {
		return nil, err
	}
	if refused := answer.GetErrorResponse(); refused != nil {
		return nil, &RefusedError{fmt.Sprintf("%s: %s", codes.Code(uint32(refused.GetErrorCode())), OneLine(refused.GetErrorMessage()))}
	}
	return answer, nil
}

// mayHaveOld reports whether a server that has failed so may have v1alpha alone. Not all
// say Unimplemented of what they do not have: those that ask for permission first, and
// proxies, say other things. What tells of the connection or of the time is the same
// again.
func mayHaveOld(err error) bool {
	switch status.Code(err) {
	case codes.OK, codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return false
	}
	return true
}

// askOld asks over v1alpha. If the server does not have that either, what it has said of
// v1 counts.
func (r *Reflection) askOld(ctx context.Context, question *pb.ServerReflectionRequest, before error) (*pb.ServerReflectionResponse, error) {
	r.Close()
	r.stream, r.old = nil, true
	answer, err := r.exchange(ctx, question)
	if err == nil {
		return answer, nil
	}
	r.old = false
	if status.Code(err) == codes.Unimplemented {
		return nil, before
	}
	return nil, err
}

func (r *Reflection) exchange(ctx context.Context, question *pb.ServerReflectionRequest) (*pb.ServerReflectionResponse, error) {
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	// A stream that has ended says why only to those who read.
	if err := r.stream.SendMsg(question); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	answer := &pb.ServerReflectionResponse{}
	if err := r.stream.RecvMsg(answer); errors.Is(err, io.EOF) {
		return nil, status.Error(codes.Internal, "the stream ended without an answer")
	} else if err != nil {
		r.Close()
		r.stream = nil
		return nil, err
	}
	return answer, nil
}

func (r *Reflection) begin(ctx context.Context) error {
	if r.stream != nil {
		return nil
	}
	path := v1
	if r.old {
		path = v1alpha
	}
	ctx, r.end = context.WithCancel(ctx)
	stream, err := r.open(ctx, path)
	if err != nil {
		r.Close()
		return err
	}
	r.stream = stream
	return nil
}

// Services lists the names of what the server serves.
func (r *Reflection) Services(ctx context.Context) ([]string, error) {
	answer, err := r.ask(ctx, &pb.ServerReflectionRequest{MessageRequest: &pb.ServerReflectionRequest_ListServices{}})
	if err != nil {
		return nil, err
	}
	if answer.GetListServicesResponse() == nil {
		return nil, &RefusedError{"it answered something else"}
	}
	var names []string
	for _, service := range answer.GetListServicesResponse().GetService() {
		names = append(names, service.GetName())
	}
	return names, nil
}

// Files returns the file that has a symbol, and all that it imports: some servers
// send them together, others one by one.
func (r *Reflection) Files(ctx context.Context, symbol string) (*descriptorpb.FileDescriptorSet, error) {
	answer, err := r.ask(ctx, &pb.ServerReflectionRequest{
		MessageRequest: &pb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: symbol},
	})
	if err != nil {
		return nil, err
	}
	g := gathered{has: map[string]bool{}}
	if err := g.add(answer); err != nil {
		return nil, err
	}
	for len(g.next) > 0 {
		path := g.next[0]
		g.next = g.next[1:]
		if err := r.fetch(ctx, &g, path); err != nil {
			return nil, err
		}
	}
	return &g.set, nil
}

// fetch adds a file that another one imports. One that the server does not have is
// taken from those of protobuf itself, or is missing.
func (r *Reflection) fetch(ctx context.Context, g *gathered, path string) error {
	if _, asked := g.has[path]; asked {
		return nil
	}
	g.has[path] = false
	answer, err := r.ask(ctx, &pb.ServerReflectionRequest{
		MessageRequest: &pb.ServerReflectionRequest_FileByFilename{FileByFilename: path},
	})
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		if known, err := protoregistry.GlobalFiles.FindFileByPath(path); err == nil {
			g.keep(protodesc.ToFileDescriptorProto(known))
		}
		return nil
	} else if err != nil {
		return err
	}
	return g.add(answer)
}

// gathered are the files that came so far.
type gathered struct {
	set   descriptorpb.FileDescriptorSet
	has   map[string]bool // by path: true if it came, false if it was asked for
	next  []string        // what those that came import
	bytes int
}

func (g *gathered) add(answer *pb.ServerReflectionResponse) error {
	for _, encoded := range answer.GetFileDescriptorResponse().GetFileDescriptorProto() {
		file := &descriptorpb.FileDescriptorProto{}
		if err := proto.Unmarshal(encoded, file); err != nil {
			return malformed(err)
		}
		g.keep(file)
		g.bytes += len(encoded)
	}
	if len(g.set.GetFile()) > MaxFiles || g.bytes > MaxBytes {
		return &DescriptionError{fmt.Sprintf("the server describes itself in more than %d files or %d MiB", MaxFiles, MaxBytes>>20)}
	}
	return nil
}

func (g *gathered) keep(file *descriptorpb.FileDescriptorProto) {
	if !g.has[file.GetName()] {
		g.has[file.GetName()] = true
		g.set.File = append(g.set.File, file)
		g.next = append(g.next, file.GetDependency()...)
	}
}

func malformed(err error) error {
	return &DescriptionError{fmt.Sprintf("what the server describes is malformed (%s)", OneLine(Plain(err)))}
}

// Link joins files. What they import and nobody has may be missing, as options that
// matter to others often are: Undescribed tells whether a message can be used.
//
// Errors: DescriptionError.
func Link(set *descriptorpb.FileDescriptorSet) (*protoregistry.Files, error) {
	files, err := protodesc.FileOptions{AllowUnresolvable: true}.NewFiles(set)
	if err != nil {
		return nil, malformed(err)
	}
	return files, nil
}
