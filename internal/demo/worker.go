package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/cabrank/cabrank/internal/demo/demopb"
)

// WorkerOptions says where and as whom a worker serves.
type WorkerOptions struct {
	// Addr is HOST:PORT or unix:/PATH, what cabrank puts into CABRANK_ADDR.
	Addr string
	// Name is repeated in every reply.
	Name string
	// Work is how long each greeting takes; zero or less means no time at all.
	Work time.Duration
}

// Serve runs the greeter, with health and reflection, until ctx ends; then it
// answers NOT_SERVING, takes no new call and returns when the last one is done.
//
// Errors: the address cannot be listened on, or the listener broke. The end of
// ctx is not an error. What hangs is for the supervisor to kill.
func Serve(ctx context.Context, opts WorkerOptions) error {
	listener, err := listen(ctx, opts.Addr)
	if err != nil {
		return err
	}
	checks := health.NewServer()
	server := grpc.NewServer()
	demopb.RegisterGreeterServer(server, &greeter{worker: opts.Name, work: opts.Work})
	healthpb.RegisterHealthServer(server, checks)
	reflection.Register(server)

	unhook := context.AfterFunc(ctx, func() {
		checks.Shutdown()
		server.GracefulStop() // Serve returns when the last call has ended
	})
	defer unhook()
	err = server.Serve(listener)
	if errors.Is(err, grpc.ErrServerStopped) { // ctx ended before Serve began
		return nil
	}
	return err
}

func listen(ctx context.Context, addr string) (net.Listener, error) {
	var config net.ListenConfig
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return config.Listen(ctx, "unix", path)
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, fmt.Errorf("address %q: want HOST:PORT or unix:/PATH", addr)
	}
	return config.Listen(ctx, "tcp", addr)
}
