//go:build real || soak

package socket_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/cabrank/cabrank/test/real/harness"
)

// reflectingRole makes the test binary a worker whose service has the methods that are
// listed in a file when it starts, and says so by reflection. Any of them prints
// "took", waits if it is called Wait, and prints "cancelled" if its caller leaves.
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

// listed describes a service with methods of these names, from Empty to Empty.
func listed(methods []string) (*protoregistry.Files, error) {
	const empty = ".google.protobuf.Empty"
	service := &descriptorpb.ServiceDescriptorProto{Name: new("Listed")}
	for _, name := range methods {
		service.Method = append(service.Method, &descriptorpb.MethodDescriptorProto{
			Name: new(name), InputType: new(empty), OutputType: new(empty),
		})
	}
	files := &protoregistry.Files{}
	if err := files.RegisterFile(emptypb.File_google_protobuf_empty_proto); err != nil {
		return nil, err
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: new("listed.proto"), Package: new("test"), Syntax: new("proto3"),
		Dependency: []string{"google/protobuf/empty.proto"}, Service: []*descriptorpb.ServiceDescriptorProto{service},
	}, files)
	if err != nil {
		return nil, err
	}
	err = files.RegisterFile(file)
	return files, err
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
	return stream.SendMsg(&emptypb.Empty{})
}
