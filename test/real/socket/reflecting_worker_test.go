//go:build real || soak

package socket_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/bufbuild/protocompile"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/cabrank/cabrank/test/real/harness"
)

// reflectingRole makes the test binary a worker whose service has the methods that are
// listed in a file when it starts, and says so by reflection. Any of them prints
// "took", waits if it is called Wait, and prints "cancelled" if its caller leaves. Items
// answers with 1 MB that is 400 times as much JSON, Text with a text of 3 MB, others with
// nothing.
const reflectingRole = "reflecting-worker"

const listedService = "test.Listed"

func runReflecting(args []string) error {
	list, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	listener, err := harness.ListenFault(os.Getenv("CABRANK_ADDR"))
	if err != nil {
		return err
	}
	files, err := listed(strings.Fields(string(list)))
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(answerListed))
	healthpb.RegisterHealthServer(server, health.NewServer())
	reflectionpb.RegisterServerReflectionServer(server, reflection.NewServerV1(reflection.ServerOptions{
		Services: listedNames{}, DescriptorResolver: files,
	}))
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() { // ends with the process
		<-stop
		server.GracefulStop()
	}()
	return server.Serve(listener)
}

type listedNames struct{}

func (listedNames) GetServiceInfo() map[string]grpc.ServiceInfo {
	return map[string]grpc.ServiceInfo{listedService: {}}
}

// listed describes a service with methods of these names, of empty messages; those that are
// large are of items, of 60 fields of about 14 bytes of JSON each.
func listed(methods []string) (protodesc.Resolver, error) {
	text := `syntax = "proto3"; package test; message Empty {} message Items { repeated Item items = 1; } message Item {`
	for n := range 60 {
		text += fmt.Sprintf("string field%02d = %d;", n+1, n+1)
	}
	text += "} service Listed {"
	for _, name := range methods {
		of := map[bool]string{true: ".test.Items", false: ".test.Empty"}[name == "Items" || name == "Text"]
		text += fmt.Sprintf("rpc %s(%s) returns (%s);", name, of, of)
	}
	source := protocompile.SourceAccessorFromMap(map[string]string{"listed.proto": text + "}"})
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{Accessor: source}}
	files, err := compiler.Compile(context.Background(), "listed.proto")
	return files.AsResolver(), err
}

func answerListed(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "took", method)
	if strings.HasSuffix(method, "/Wait") {
		<-stream.Context().Done()
		fmt.Fprintln(os.Stdout, "cancelled", method)
		return context.Cause(stream.Context())
	}
	answer, field1 := &emptypb.Empty{}, protowire.AppendTag(nil, 1, protowire.BytesType)
	switch method[strings.LastIndexByte(method, '/'):] { // of fields that an Empty does not know
	case "/Items":
		answer.ProtoReflect().SetUnknown(bytes.Repeat(append(field1, 0), 500_000))
	case "/Text":
		text := protowire.AppendString(field1, strings.Repeat("x", 3_000_000))
		answer.ProtoReflect().SetUnknown(protowire.AppendBytes(field1, text))
	}
	return stream.SendMsg(answer)
}
