package method_test

import (
	"context"
	"testing"
	"time"

	"github.com/bufbuild/protocompile"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/method"
)

// No test leaves a goroutine or a listener behind.
func TestMain(m *testing.M) { testkit.VerifyMain(m) }

// limit is more than any answer takes.
const limit = 30 * time.Second

// serve runs a server until the test ends and returns a connection to it.
func serve(t *testing.T, server *grpc.Server) *grpc.ClientConn {
	t.Helper()
	listener := testkit.Listen(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return dial(t, listener.Addr().String())
}

func dial(t *testing.T, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	testkit.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// kinds resolves a method of testdata/kinds.proto.
func kinds(t testing.TB, name string) *method.Method {
	t.Helper()
	return fromFile(t, "kinds.proto", "kinds.v1.Kinds/"+name)
}

func fromFile(t testing.TB, file, name string) *method.Method {
	t.Helper()
	m, err := method.FromFiles(t.Context(), method.Files{Names: []string{"testdata/" + file}}, name)
	testkit.Must(t, err)
	return m
}

// compiled returns files of testdata without the tested code.
func compiled(t testing.TB, files ...string) []protoreflect.FileDescriptor {
	t.Helper()
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{"testdata"}}),
	}
	linked, err := compiler.Compile(context.Background(), files...)
	testkit.Must(t, err)
	var all []protoreflect.FileDescriptor
	for _, file := range linked {
		all = append(all, file)
	}
	return all
}

// knownFiles are those of testdata and what they import.
func knownFiles(t testing.TB) *protoregistry.Files {
	t.Helper()
	known := &protoregistry.Files{}
	var add func(file protoreflect.FileDescriptor)
	add = func(file protoreflect.FileDescriptor) {
		if _, err := known.FindFileByPath(file.Path()); err == nil {
			return
		}
		for i := range file.Imports().Len() {
			add(file.Imports().Get(i).FileDescriptor)
		}
		err := known.RegisterFile(file)
		testkit.Want(t, err == nil, "%v", err)
	}
	for _, file := range compiled(t, "kinds.proto", "old.proto") {
		add(file)
	}
	return known
}

// messageNamed returns an empty message of testdata.
func messageNamed(t testing.TB, file, name string) *dynamicpb.Message {
	t.Helper()
	found := compiled(t, file)[0].Messages().ByName(protoreflect.Name(name))
	testkit.Need(t, found != nil, "%s has no message %s", file, name)
	return dynamicpb.NewMessage(found)
}

// decoded returns an encoded message of a type as one.
func decoded(t testing.TB, empty proto.Message, encoded []byte) proto.Message {
	t.Helper()
	m := proto.Clone(empty)
	err := proto.Unmarshal(encoded, m)
	testkit.Need(t, err == nil, "%x: %v", encoded, err)
	return m
}

// requests reads a template that has to be right.
func requests(t testing.TB, m *method.Method, data string) *method.Requests {
	t.Helper()
	r, err := m.Requests(method.Data{Name: "--data", Text: []byte(data), Seed: 7})
	testkit.Need(t, err == nil, "%s\n%v", data, err)
	return r
}
