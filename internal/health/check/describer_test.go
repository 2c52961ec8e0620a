package check

import (
	"context"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/testkit"
)

// listed is what a server's list by reflection is made of.
type listed []string

func (l listed) GetServiceInfo() map[string]grpc.ServiceInfo {
	info := map[string]grpc.ServiceInfo{}
	for _, name := range l {
		info[name] = grpc.ServiceInfo{}
	}
	return info
}

// describing starts a server with a health service, and lets register add to it.
func describing(t *testing.T, register func(*grpc.Server), options ...grpc.ServerOption) (address string, of *health.Server) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	server, of := grpc.NewServer(options...), health.NewServer()
	grpc_health_v1.RegisterHealthServer(server, of)
	register(server)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends with Stop
	}()
	t.Cleanup(func() { server.Stop(); <-done })
	return listener.Addr().String(), of
}

// describe runs a Describer until the test ends, or it does.
func describe(t *testing.T, address string) (told chan map[string]bool, ended chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	told, ended = make(chan map[string]bool), make(chan struct{})
	d := Describer{Network: "tcp", Address: address, every: 10 * time.Millisecond, Tell: func(services map[string]bool) {
		select {
		case told <- services:
		case <-ctx.Done():
		}
	}}
	go func() {
		defer close(ended)
		d.Describe(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return told, ended
}

func wantTold(t *testing.T, told <-chan map[string]bool, want map[string]bool) {
	t.Helper()
	select {
	case got := <-told:
		testkit.Need(t, maps.Equal(got, want), "told %v, want %v", got, want)
	case <-t.Context().Done():
	}
}

// The services that a server lists, and what it says of the health of each, which it may
// change.
func TestDescribe(t *testing.T) {
	address, of := describing(t, func(s *grpc.Server) {
		reflection.RegisterV1(&registrar{s, listed{"a.A", "b.B", "grpc.health.v1.Health"}})
	})
	of.SetServingStatus("a.A", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	told, _ := describe(t, address)
	wantTold(t, told, map[string]bool{"a.A": false, "b.B": true, "grpc.health.v1.Health": true})
	of.SetServingStatus("a.A", grpc_health_v1.HealthCheckResponse_SERVING)
	wantTold(t, told, map[string]bool{"a.A": true, "b.B": true, "grpc.health.v1.Health": true})
}

// One that knows of no service's health has said all with its list.
func TestDescribeOnce(t *testing.T) {
	address, _ := describing(t, func(s *grpc.Server) {
		reflection.RegisterV1(&registrar{s, listed{"a.A"}})
	})
	told, ended := describe(t, address)
	wantTold(t, told, map[string]bool{"a.A": true})
	<-ended
}

// One that does not tell of health is not asked again.
func TestDescribeWhereHealthIsRefused(t *testing.T) {
	asked := 0
	refuse := grpc.UnaryInterceptor(func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
		asked++
		return nil, status.Error(codes.PermissionDenied, "not you")
	})
	address, _ := describing(t, func(s *grpc.Server) { reflection.RegisterV1(&registrar{s, listed{"a.A"}}) }, refuse)
	told, ended := describe(t, address)
	wantTold(t, told, map[string]bool{"a.A": true})
	<-ended
	testkit.Want(t, asked == 1, "asked %d times", asked)
}

// The old protocol does as well.
func TestDescribeByOldReflection(t *testing.T) {
	address, _ := describing(t, func(s *grpc.Server) {
		grpc_reflection_v1alpha.RegisterServerReflectionServer(s, reflection.NewServer(reflection.ServerOptions{Services: listed{"a.A"}}))
	})
	told, _ := describe(t, address)
	wantTold(t, told, map[string]bool{"a.A": true})
}

// A server without reflection, and one that lists more than is held, are not described.
func TestNotDescribed(t *testing.T) {
	many := make(listed, maxServices+1)
	for i := range many {
		many[i] = "a." + strings.Repeat("A", i+1)
	}
	for name, register := range map[string]func(*grpc.Server){
		"no reflection": func(*grpc.Server) {},
		"too many":      func(s *grpc.Server) { reflection.RegisterV1(&registrar{s, many}) },
		"too long": func(s *grpc.Server) {
			reflection.RegisterV1(&registrar{s, listed{strings.Repeat("A", maxService+1)}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			address, _ := describing(t, register)
			told, ended := describe(t, address)
			select {
			case services := <-told:
				t.Errorf("told %d services", len(services))
			case <-ended:
			}
		})
	}
}

// registrar registers a service, and lists others.
type registrar struct {
	*grpc.Server
	listed
}

func (r *registrar) GetServiceInfo() map[string]grpc.ServiceInfo { return r.listed.GetServiceInfo() }
