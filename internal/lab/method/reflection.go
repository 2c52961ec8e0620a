package method

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

const (
	// maxDescribedFiles and maxDescribedBytes bound what a server may send to describe
	// one service: a large company's whole API has a tenth of it.
	maxDescribedFiles = 4_000
	maxDescribedBytes = 64 << 20

	// v1alpha has the messages of v1 under another name.
	v1      = pb.ServerReflection_ServerReflectionInfo_FullMethodName
	v1alpha = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
)

// refusedError is the server's answer that it has not what was asked for.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }

// reflection is a conversation with a server about what it serves.
type reflection struct {
	conn   *grpc.ClientConn
	stream grpc.ClientStream // nil before the first question
	end    context.CancelFunc
	old    bool // v1alpha
}

func (r *reflection) close() {
	if r.end != nil {
		r.end()
	}
}

// ask has one question answered, over v1alpha if the server does not have v1.
func (r *reflection) ask(ctx context.Context, question *pb.ServerReflectionRequest) (*pb.ServerReflectionResponse, error) {
	first := r.stream == nil
	answer, err := r.exchange(ctx, question)
	if first && !r.old && status.Code(err) == codes.Unimplemented {
		r.old = true
		return r.exchange(ctx, question)
	}
	if err != nil {
		return nil, err
	}
	if refused := answer.GetErrorResponse(); refused != nil {
		return nil, &refusedError{text: fmt.Sprintf("%s: %s", codes.Code(uint32(refused.GetErrorCode())), shorten(refused.GetErrorMessage()))}
	}
	return answer, nil
}

func (r *reflection) exchange(ctx context.Context, question *pb.ServerReflectionRequest) (*pb.ServerReflectionResponse, error) {
	if err := r.open(ctx); err != nil {
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
		r.close()
		r.stream = nil
		return nil, err
	}
	return answer, nil
}

func (r *reflection) open(ctx context.Context) error {
	if r.stream != nil {
		return nil
	}
	path := v1
	if r.old {
		path = v1alpha
	}
	ctx, r.end = context.WithCancel(ctx)
	var err error
	r.stream, err = r.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, path,
		grpc.MaxCallRecvMsgSize(maxDescribedBytes))
	if err != nil {
		r.close()
		r.stream = nil
	}
	return err
}

func (r *reflection) services(ctx context.Context) ([]string, error) {
	answer, err := r.ask(ctx, &pb.ServerReflectionRequest{MessageRequest: &pb.ServerReflectionRequest_ListServices{}})
	if err != nil {
		return nil, err
	}
	if answer.GetListServicesResponse() == nil {
		return nil, &refusedError{text: "it answered something else"}
	}
	var names []string
	for _, service := range answer.GetListServicesResponse().GetService() {
		names = append(names, service.GetName())
	}
	return names, nil
}

// files returns the file that has a symbol, and all that it imports: some servers
// send them together, others one by one.
func (r *reflection) files(ctx context.Context, symbol string) (*descriptorpb.FileDescriptorSet, error) {
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
func (r *reflection) fetch(ctx context.Context, g *gathered, path string) error {
	if _, asked := g.has[path]; asked {
		return nil
	}
	g.has[path] = false
	answer, err := r.ask(ctx, &pb.ServerReflectionRequest{
		MessageRequest: &pb.ServerReflectionRequest_FileByFilename{FileByFilename: path},
	})
	if refused := (*refusedError)(nil); errors.As(err, &refused) {
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
			return fmt.Errorf("what the server describes is malformed (%s): %s", shorten(plain(err)), useFiles)
		}
		g.keep(file)
		g.bytes += len(encoded)
	}
	if len(g.set.GetFile()) > maxDescribedFiles || g.bytes > maxDescribedBytes {
		return fmt.Errorf("the server describes itself in more than %d files or %d MiB: %s",
			maxDescribedFiles, maxDescribedBytes>>20, useFiles)
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
