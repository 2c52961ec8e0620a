package schema_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/schema"
	"github.com/cabrank/cabrank/internal/testkit"
)

const (
	work   = "cabrank.example.v1.Work"
	ioPath = "/" + work + "/Io"
)

// server answers reflection, with the files that it has at that time.
type server struct {
	asked atomic.Int32

	mu    sync.Mutex
	files []protoreflect.FileDescriptor
	err   error
	takes time.Duration
}

// becomes changes what it answers from now on.
func (s *server) becomes(files []protoreflect.FileDescriptor, err error, takes time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files, s.err, s.takes = files, err, takes
}

func (s *server) open(ctx context.Context, _ string) (schema.Stream, error) {
	s.asked.Add(1)
	return &conversation{server: s, ctx: ctx}, nil
}

type conversation struct {
	*server

	ctx      context.Context //nolint:containedctx // of the stream
	question *pb.ServerReflectionRequest
}

func (c *conversation) SendMsg(m any) error {
	c.question, _ = m.(*pb.ServerReflectionRequest)
	return nil
}

func (c *conversation) RecvMsg(m any) error {
	c.mu.Lock()
	takes := c.takes
	c.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-c.ctx.Done():
		return status.FromContextError(c.ctx.Err()).Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	answer, _ := m.(proto.Message)
	proto.Merge(answer, c.answer())
	return nil
}

func (c *conversation) answer() *pb.ServerReflectionResponse {
	symbol := protoreflect.FullName(c.question.GetFileContainingSymbol())
	for _, file := range c.files {
		has := file.Services().ByName(symbol.Name()) != nil && file.Package() == symbol.Parent()
		if has || file.Path() == c.question.GetFileByFilename() {
			encoded, _ := proto.Marshal(protodesc.ToFileDescriptorProto(file))
			return &pb.ServerReflectionResponse{MessageResponse: &pb.ServerReflectionResponse_FileDescriptorResponse{
				FileDescriptorResponse: &pb.FileDescriptorResponse{FileDescriptorProto: [][]byte{encoded}},
			}}
		}
	}
	return &pb.ServerReflectionResponse{MessageResponse: &pb.ServerReflectionResponse_ErrorResponse{
		ErrorResponse: &pb.ErrorResponse{ErrorCode: int32(codes.NotFound), ErrorMessage: "not here"},
	}}
}

// pass lets time go by in a bubble.
func pass(d time.Duration) { <-time.After(d) }

func workFile() protoreflect.FileDescriptor { return workpb.File_cabrank_example_v1_work_proto }

func workFiles() []protoreflect.FileDescriptor {
	return []protoreflect.FileDescriptor{workFile()}
}

func newSchema(s *server) *schema.Schema {
	return schema.New(schema.Options{Services: []string{work}, Open: s.open, Limit: 10 * time.Second})
}

// A method is asked for once; one that is not there once a second, whoever wants it.
func TestAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{takes: time.Millisecond}
		known := newSchema(s)
		want := func(path string, err error, asked int32) {
			t.Helper()
			m, got := known.Method(t.Context(), path)
			testkit.Want(t, errors.Is(got, err) && (m == nil) == (err != nil) && s.asked.Load() == asked,
				"%s: %v, %d conversations; want %v, %d", path, got, s.asked.Load(), err, asked)
		}
		want(ioPath, schema.ErrUnknown, 1)
		want(ioPath, schema.ErrUnknown, 1)
		want("/other.Service/Io", schema.ErrUnknown, 1)
		s.becomes(workFiles(), nil, 0)
		pass(time.Second)
		want(ioPath, nil, 2)
		want("/"+work+"/Chat", nil, 2)
		want("/"+work+"/Nothing", schema.ErrUnknown, 2)
		pass(time.Second)
		want("/"+work+"/Nothing", schema.ErrUnknown, 3)
		testkit.Want(t, known.Known(ioPath) != nil && known.Known("/"+work+"/Nothing") == nil, "what is known")
	})
}

// When servers have changed they are asked again, behind the back of calls.
func TestChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{files: workFiles()}
		known := newSchema(s)
		before, err := known.Method(t.Context(), ioPath)
		testkit.Must(t, err)
		known.Changed()
		known.Changed()
		testkit.Equal(t, known.Known(ioPath), before, "known, as before")
		pass(time.Second)
		for range 3 {
			testkit.Want(t, known.Known(ioPath) != nil, "known, as before")
		}
		synctest.Wait()
		m := known.Known(ioPath)
		testkit.Want(t, m != before && m != nil && s.asked.Load() == 2, "%d conversations", s.asked.Load())
		s.becomes(nil, nil, 0)
		known.Changed()
		pass(time.Second)
		known.Known(ioPath)
		synctest.Wait()
		testkit.Want(t, known.Known(ioPath) == nil, "a method that has gone is known")
	})
}

// What is known is used while servers do not answer, and they are asked again.
func TestServersThatFail(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		takes time.Duration
		want  error
	}{
		"without reflection": {status.Error(codes.Unimplemented, "no"), 0, schema.ErrUndescribed},
		"gone":               {status.Error(codes.Unavailable, "no\nworker"), 0, schema.ErrUnavailable},
		"silent":             {nil, time.Hour, schema.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{files: workFiles()}
				known := newSchema(s)
				_, err := known.Method(t.Context(), ioPath)
				testkit.Must(t, err)
				s.becomes(workFiles(), tc.err, tc.takes)
				known.Changed()
				pass(time.Second)
				_, err = known.Method(t.Context(), "/"+work+"/Nothing")
				testkit.Want(t, errors.Is(err, tc.want) && !strings.Contains(err.Error(), "\n"), "%v", err)
				testkit.Want(t, known.Known(ioPath) != nil, "known, as before")
				s.becomes(workFiles(), nil, 0)
				pass(11 * time.Second)
				_, err = known.Method(t.Context(), "/"+work+"/Nothing")
				testkit.Want(t, errors.Is(err, schema.ErrUnknown), "afterwards: %v", err)
			})
		})
	}
}

// A caller does not wait longer than it wants to.
func TestMethodWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := newSchema(&server{takes: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := known.Method(ctx, ioPath)
		testkit.Want(t, errors.Is(err, context.DeadlineExceeded), "%v", err)
		pass(time.Minute)
	})
}

// set writes a file of descriptors.
func set(t testing.TB, files ...protoreflect.FileDescriptor) string {
	t.Helper()
	all := &descriptorpb.FileDescriptorSet{}
	for _, file := range files {
		all.File = append(all.File, protodesc.ToFileDescriptorProto(file))
	}
	encoded, err := proto.Marshal(all)
	testkit.Must(t, err)
	path := filepath.Join(t.TempDir(), "set.pb")
	testkit.Must(t, os.WriteFile(path, encoded, 0o600))
	return path
}

func TestReadFiles(t *testing.T) {
	twice := set(t, workFile())
	files, err := schema.ReadFiles([]string{twice, set(t, workFile(), anypb.File_google_protobuf_any_proto)})
	testkit.Must(t, err)
	known := schema.New(schema.Options{Files: files})
	m, err := known.Method(t.Context(), ioPath)
	testkit.Need(t, err == nil && known.Known(ioPath) == m, "%v", err)
	_, err = known.Method(t.Context(), "/a.B/C")
	testkit.Want(t, errors.Is(err, schema.ErrUnknown), "%v", err)
	text := filepath.Join(t.TempDir(), "work.proto")
	testkit.Must(t, os.WriteFile(text, []byte(`syntax = "proto3";`), 0o600))
	for path, want := range map[string]string{
		text:             "is no file of descriptors",
		set(t):           "is no file of descriptors",
		"/there/is/none": "no such file",
		set(t, durationpb.File_google_protobuf_duration_proto): "no method",
	} {
		_, err = schema.ReadFiles([]string{path})
		testkit.Want(t, err != nil && strings.Contains(err.Error(), want), "%s: %v", path, err)
	}
}
