package method_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/method"
)

// withWork is a server of the examples' service and of health.
func withWork(options ...grpc.ServerOption) *grpc.Server {
	server := grpc.NewServer(options...)
	workpb.RegisterWorkServer(server, workpb.UnimplementedWorkServer{})
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	return server
}

func TestFromServer(t *testing.T) {
	for name, register := range map[string]func(*grpc.Server){
		"both": func(s *grpc.Server) { reflection.Register(s) },
		"v1":   func(s *grpc.Server) { reflection.RegisterV1(s) },
		"v1alpha": func(s *grpc.Server) {
			grpc_reflection_v1alpha.RegisterServerReflectionServer(s, reflection.NewServer(reflection.ServerOptions{Services: s}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := withWork()
			register(server)
			conn := serve(t, server)
			for called, want := range map[string]struct{ path, kind string }{
				"cabrank.example.v1.Work/Io":    {"/cabrank.example.v1.Work/Io", "unary"},
				"/cabrank.example.v1.Work/Sum":  {"/cabrank.example.v1.Work/Sum", "client stream"},
				"cabrank.example.v1.Work.Count": {"/cabrank.example.v1.Work/Count", "server stream"},
				"/cabrank.example.v1.Work.Chat": {"/cabrank.example.v1.Work/Chat", "bidi"},
				"grpc.health.v1.Health/Watch":   {"/grpc.health.v1.Health/Watch", "server stream"},
				"grpc.health.v1.Health.Check":   {"/grpc.health.v1.Health/Check", "unary"},
			} {
				m, err := method.FromServer(t.Context(), conn, called, limit)
				testkit.Need(t, err == nil, "%s: %v", called, err)
				testkit.Want(t, m.Path == want.path && m.Kind() == want.kind, "%s: %s %s, want %+v", called, m.Path, m.Kind(), want)
			}
		})
	}
}

// A server that has v1alpha alone may say anything of v1, as one does that asks for
// permission before it looks what there is. If it has neither, that is what counts.
func TestServerThatRefusesV1(t *testing.T) {
	for _, code := range []codes.Code{codes.PermissionDenied, codes.Unauthenticated, codes.Internal, codes.NotFound, codes.Unknown} {
		refuse := grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if strings.HasPrefix(info.FullMethod, "/grpc.reflection.v1.") {
				return status.Error(code, "not for you")
			}
			return handler(srv, stream)
		})
		server := withWork(refuse)
		reflection.Register(server)
		m, err := method.FromServer(t.Context(), serve(t, server), "cabrank.example.v1.Work/Io", limit)
		testkit.Want(t, err == nil && m.Path == "/cabrank.example.v1.Work/Io", "%v: %v", code, err)
	}
	server := withWork(grpc.StreamInterceptor(func(any, grpc.ServerStream, *grpc.StreamServerInfo, grpc.StreamHandler) error {
		return status.Error(codes.PermissionDenied, "not for you")
	}))
	reflection.RegisterV1(server)
	_, err := method.FromServer(t.Context(), serve(t, server), "cabrank.example.v1.Work/Io", limit)
	wantLine(t, "without v1alpha", err, "not for you")
}

// Whoever names something that is not there reads what is, on one line.
func TestFromServerRefuses(t *testing.T) {
	server := withWork()
	reflection.Register(server)
	conn := serve(t, server)
	for called, want := range map[string]string{
		"cabrank.example.v1.Wrok/Io":          "no service cabrank.example.v1.Wrok; services there: cabrank.example.v1.Work, grpc.health.v1.Health, ",
		"Work/Io":                             "no service Work; services there: cabrank.example.v1.Work, ",
		"cabrank.example.v1.Work/io":          "cabrank.example.v1.Work has no method io; its methods: Io, ",
		"cabrank.example.v1.Work":             "cabrank.example.v1.Work is a service: write cabrank.example.v1.Work/METHOD; its methods: ",
		"grpc.health.v1.HealthCheckRequest/X": "no service grpc.health.v1.HealthCheckRequest; services there: ",
	} {
		_, err := method.FromServer(t.Context(), conn, called, limit)
		wantLine(t, called, err, conn.Target()+": "+want)
	}
	for _, called := range []string{"", "/", ".", "Io", "a/", "/a", "a b/c", "a/b/c/", "1a/b", "a./b", strings.Repeat("x", 5000)} {
		_, err := method.FromServer(t.Context(), conn, called, limit)
		wantLine(t, called, err, "method \"")
		wantLine(t, called, err, "write pkg.Service/Method")
	}
}

// wantLine checks that an error is one line of bounded length with a text in it.
func wantLine(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\n\t\x00\x1b") || len(err.Error()) > 2500 {
		t.Errorf("%.100s: %v\nwant: %s", what, err, want)
	}
}

func TestServerWithoutReflection(t *testing.T) {
	conn := serve(t, withWork())
	_, err := method.FromServer(t.Context(), conn, "cabrank.example.v1.Work/Io", limit)
	wantLine(t, "none", err, conn.Target()+": the server has no reflection: use --proto FILE")
}

func TestServerThatIsNotThere(t *testing.T) {
	addr := testkit.FreeAddress(t)
	_, err := method.FromServer(t.Context(), dial(t, addr), "a.B/C", limit)
	wantLine(t, "gone", err, addr+": cannot be reached: ")
	wantLine(t, "gone", err, "refused")
}

type (
	asked  = *reflectionv1.ServerReflectionRequest
	answer = *reflectionv1.ServerReflectionResponse
)

// scripted answers questions of reflection with what a function says.
type scripted struct {
	reflectionv1.UnimplementedServerReflectionServer

	answer func(asked) answer
}

func (s scripted) ServerReflectionInfo(stream reflectionv1.ServerReflection_ServerReflectionInfoServer) error {
	for {
		question, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		answer := s.answer(question)
		if answer == nil { // silence; the server may be the first to notice the deadline
			<-stream.Context().Done()
			return status.FromContextError(stream.Context().Err()).Err()
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
}

func withScript(t *testing.T, answer func(asked) answer) *grpc.ClientConn {
	t.Helper()
	server := grpc.NewServer(grpc.MaxSendMsgSize(1 << 30))
	reflectionv1.RegisterServerReflectionServer(server, scripted{answer: answer})
	return serve(t, server)
}

func described(files ...*descriptorpb.FileDescriptorProto) answer {
	answer := &reflectionv1.FileDescriptorResponse{}
	for _, file := range files {
		encoded, _ := proto.Marshal(file)
		answer.FileDescriptorProto = append(answer.FileDescriptorProto, encoded)
	}
	return &reflectionv1.ServerReflectionResponse{
		MessageResponse: &reflectionv1.ServerReflectionResponse_FileDescriptorResponse{FileDescriptorResponse: answer},
	}
}

func refusal(text string) answer {
	return &reflectionv1.ServerReflectionResponse{MessageResponse: &reflectionv1.ServerReflectionResponse_ErrorResponse{
		ErrorResponse: &reflectionv1.ErrorResponse{ErrorCode: 5, ErrorMessage: text},
	}}
}

func TestServerThatIsSilent(t *testing.T) {
	conn := withScript(t, always(nil))
	_, err := method.FromServer(t.Context(), conn, "a.B/C", 50*time.Millisecond)
	wantLine(t, "silent", err, "reflection did not answer within 50ms: use --proto FILE")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = method.FromServer(ctx, conn, "a.B/C", limit)
	testkit.Want(t, errors.Is(err, context.Canceled), "canceled: %v", err)
}

// What a server sends is not to be trusted.
func TestServerThatDescribesNonsense(t *testing.T) {
	junk := described()
	junk.GetFileDescriptorResponse().FileDescriptorProto = [][]byte{[]byte("\xff\xff\xff")}
	endless := 0
	for name, tc := range map[string]struct {
		answer func(asked) answer
		want   string
	}{
		"junk":     {always(junk), "what the server describes is malformed (cannot parse"},
		"nothing":  {always(described()), "reflection does not describe a.B (it sent files without it): use --proto FILE"},
		"no name":  {always(described(&descriptorpb.FileDescriptorProto{})), "malformed (file path must be populated): use"},
		"cycle":    {always(described(&descriptorpb.FileDescriptorProto{Name: new("x"), Dependency: []string{"x"}})), "malformed (import cycle"},
		"no names": {always(refusal("go\naway\x1b[31m")), "reflection does not describe a.B (NotFound: go away [31m): use --proto FILE"},
		"without end": {func(asked) answer {
			endless++
			return described(&descriptorpb.FileDescriptorProto{
				Name: new(strings.Repeat("x", endless)), Dependency: []string{strings.Repeat("x", endless+1)},
			})
		}, "the server describes itself in more than 4000 files or 64 MiB: use"},
		"too large": {always(described(&descriptorpb.FileDescriptorProto{Name: new(strings.Repeat("x", 65<<20))})),
			"the server describes itself in more than 64 MiB: use"},
		"listed only": {func(q asked) answer {
			if q.GetFileContainingSymbol() != "" {
				return refusal("no")
			}
			return &reflectionv1.ServerReflectionResponse{MessageResponse: &reflectionv1.ServerReflectionResponse_ListServicesResponse{
				ListServicesResponse: &reflectionv1.ListServiceResponse{Service: []*reflectionv1.ServiceResponse{{Name: "a.B"}}},
			}}
		}, "the server has a.B but does not describe it (NotFound: no): use --proto FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := method.FromServer(t.Context(), withScript(t, tc.answer), "a.B/C", limit)
			wantLine(t, name, err, tc.want)
		})
	}
}

func always(one answer) func(asked) answer { return func(asked) answer { return one } }

// A server may not have all that its files import, such as options: that matters only
// to requests that need it. Files of protobuf itself it need not have.
func TestServerWithMissingImports(t *testing.T) {
	file := &descriptorpb.FileDescriptorProto{}
	testkit.Must(t, prototext.Unmarshal([]byte(`
		name: "a.proto" package: "a" syntax: "proto3"
		dependency: ["google/api/annotations.proto", "lost.proto", "google/protobuf/duration.proto"]
		message_type { name: "Good"
			field { name: "f1" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".a.Good" }
			field { name: "f2" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".google.protobuf.Duration" } }
		message_type { name: "Bad"
			field { name: "f1" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".a.Good" }
			field { name: "f2" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".lost.Type" } }
		service { name: "B"
			method { name: "Good" input_type: ".a.Good" output_type: ".lost.Type" }
			method { name: "Bad" input_type: ".a.Bad" output_type: ".a.Good" } }
	`), file))
	conn := withScript(t, func(q asked) answer {
		if q.GetFileContainingSymbol() == "a.B" {
			return described(file)
		}
		return refusal("no such file")
	})
	m, err := method.FromServer(t.Context(), conn, "a.B/Good", limit)
	testkit.Must(t, err)
	got := requests(t, m, `{"f2": "1.5s"}`).Messages(0)
	testkit.Want(t, string(got[0]) == "\x12\x08\x08\x01\x10\x80\xca\xb5\xee\x01", "%x", got)
	_, err = method.FromServer(t.Context(), conn, "a.B/Bad", limit)
	wantLine(t, "bad", err, "a.B/Bad: its request needs lost.Type, which no file describes")
}

// anyone serves the files of testdata one by one, as other servers than Go's do.
func anyone(t *testing.T) *grpc.ClientConn {
	t.Helper()
	known := knownFiles(t)
	return withScript(t, func(q asked) answer {
		file, err := known.FindFileByPath(q.GetFileByFilename())
		if symbol := q.GetFileContainingSymbol(); symbol != "" {
			var found protoreflect.Descriptor
			if found, err = known.FindDescriptorByName(protoreflect.FullName(symbol)); err == nil {
				file = found.ParentFile()
			}
		}
		if err != nil {
			return refusal(err.Error())
		}
		return described(protodesc.ToFileDescriptorProto(file))
	})
}

// Files that import others are asked for one by one.
func TestFilesOneByOne(t *testing.T) {
	m, err := method.FromServer(t.Context(), anyone(t), "kinds.v1.Kinds/Unary", limit)
	testkit.Must(t, err)
	got := requests(t, m, `{"wrapped": "w{{.RequestNumber}}"}`).Messages(3)[0]
	testkit.Want(t, strings.Contains(string(got), "w3"), "%q", got)
}
