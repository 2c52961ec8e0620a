//go:build real || soak

package workers_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// describedRole as the first argument makes the test binary a worker that lists two
// services. The call Sick has it say that the first one does not serve; the call Hold
// keeps its slot until its caller leaves.
const describedRole = "described-worker"

const namedService, otherService = "test.Named", "test.Other"

type namedServices struct{}

func (namedServices) GetServiceInfo() map[string]grpc.ServiceInfo {
	return map[string]grpc.ServiceInfo{namedService: {}, otherService: {}}
}

func runDescribed([]string) error {
	listener, err := harness.ListenFault(os.Getenv("CABRANK_ADDR"))
	if err != nil {
		return err
	}
	of := health.NewServer()
	of.SetServingStatus(namedService, healthpb.HealthCheckResponse_SERVING)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		switch method, _ := grpc.MethodFromServerStream(stream); method {
		case "/" + namedService + "/Sick":
			of.SetServingStatus(namedService, healthpb.HealthCheckResponse_NOT_SERVING)
			return stream.SendMsg(&emptypb.Empty{})
		case "/" + namedService + "/Hold":
			if err := stream.SendMsg(&emptypb.Empty{}); err != nil {
				return err
			}
			<-stream.Context().Done()
		}
		return status.Error(codes.Unimplemented, "there is no such method")
	}))
	healthpb.RegisterHealthServer(server, of)
	reflectionpb.RegisterServerReflectionServer(server, reflection.NewServerV1(reflection.ServerOptions{Services: namedServices{}}))
	return server.Serve(listener)
}

// R7: callers learn by name how a service is, and a method that no worker has waits for
// no slot.
func TestServicesByName(t *testing.T) {
	const balancerCheck = "/AWS.ALB/healthcheck"
	c := harness.StartControlled(t, []string{harness.OwnBinary(t), describedRole}, "--workers", "1", "--min-ready", "1", "--slots", "1").Booted(1)
	conn := harness.Dial(t, c.Addr)
	ctx, cancel := context.WithTimeout(t.Context(), harness.CallBound)
	defer cancel()
	client := healthpb.NewHealthClient(conn)
	list := func() map[string]*healthpb.HealthCheckResponse {
		got, err := client.List(ctx, &healthpb.HealthListRequest{})
		testkit.Must(t, err)
		return got.GetStatuses()
	}
	testkit.Eventually(t, harness.Patience, "a description of the worker", func() bool { return list()[otherService] != nil })
	if got := list(); got[""].GetStatus() != healthpb.HealthCheckResponse_SERVING || got[namedService].GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("the list says %v", got)
	}
	_, err := client.Check(ctx, &healthpb.HealthCheckRequest{Service: "nobody.Has"})
	testkit.Want(t, status.Code(err) == codes.NotFound, "a service that there is not: %v", err)
	empty := func(path string) codes.Code {
		return status.Code(conn.Invoke(ctx, path, &emptypb.Empty{}, &emptypb.Empty{}))
	}
	testkit.Equal(t, empty(balancerCheck), codes.Unimplemented, "the check of a balancer")
	if code := empty("/" + namedService + "/Sick"); code != codes.OK {
		t.Fatalf("Sick: %v", code)
	}
	held, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/"+namedService+"/Hold") // ends with ctx
	if err == nil {
		err = errors.Join(held.SendMsg(&emptypb.Empty{}), held.CloseSend(), held.RecvMsg(&emptypb.Empty{}))
	}
	testkit.Must(t, err)
	began := time.Now()
	if code := empty(balancerCheck); code != codes.Unimplemented || c.Metric("cabrank_refusals_total", "reason", "no_method") != 1 {
		t.Errorf("the check of a balancer with no slot free: %v after %v", code, time.Since(began))
	}
	testkit.Eventually(t, harness.Patience, "the service is not serving", func() bool {
		got, err := client.Check(ctx, &healthpb.HealthCheckRequest{Service: namedService})
		return err == nil && got.GetStatus() == healthpb.HealthCheckResponse_NOT_SERVING
	})
	if got := list(); got[otherService].GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("the list says %v", got)
	}
	cancel()
}
