// Command go is the Echo service on grpc-go: at 127.0.0.1:PORT, 50051 if nothing is said.
package main

import (
	"cmp"
	"context"
	"log"
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/cabrank/cabrank/examples/echo/go/echopb"
)

type echo struct{ echopb.UnimplementedEchoServer }

func (echo) Say(_ context.Context, req *echopb.EchoRequest) (*echopb.EchoReply, error) {
	use(req.GetCpuMs())
	return &echopb.EchoReply{Text: req.GetText(), Number: 1}, nil
}

func (echo) Repeat(req *echopb.EchoRequest, out grpc.ServerStreamingServer[echopb.EchoReply]) error {
	for number := range min(req.GetCount(), 10_000) {
		use(req.GetCpuMs())
		if err := out.Send(&echopb.EchoReply{Text: req.GetText(), Number: number + 1}); err != nil {
			return err // the caller has left
		}
	}
	return nil
}

// use has this thread compute for so long: on a busy machine it takes longer.
func use(millis uint32) {
	runtime.LockOSThread() // the clock is that of the thread
	defer runtime.UnlockOSThread()
	for upTo := used() + time.Duration(min(millis, 1000))*time.Millisecond; used() < upTo; {
		continue
	}
}

func used() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 1 << 62 // never seen; no call hangs for it
	}
	return time.Duration(t.Nano())
}

func main() {
	if err := serve(); err != nil {
		log.Fatal(err)
	}
}

func serve() error {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", cmp.Or(os.Getenv("PORT"), "50051")))
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	echopb.RegisterEchoServer(server, echo{})
	healthpb.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, server.GracefulStop) // calls that run are served
	return server.Serve(listener)
}
