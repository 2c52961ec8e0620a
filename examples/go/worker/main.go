// Command worker is a worker on grpc-go: CABRANK_ADDR is its address.
package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/examples/go/workpb"
)

// work shows each kind of call once.
type work struct {
	workpb.UnimplementedWorkServer
	name       string
	executions atomic.Int64
}

//nolint:staticcheck // the .proto file gives the name
func (w *work) Cpu(_ context.Context, req *workpb.CpuRequest) (*workpb.CpuReply, error) {
	return &workpb.CpuReply{Value: fib(min(req.GetN(), 40)), Worker: w.name}, nil
}

func (w *work) Io(ctx context.Context, req *workpb.IoRequest) (*workpb.IoReply, error) {
	millis := min(req.GetMillis(), 60_000)
	if err := sleep(ctx, millis); err != nil {
		return nil, err
	}
	return &workpb.IoReply{Millis: millis, Worker: w.name}, nil
}

func (w *work) Count(req *workpb.CountRequest, out grpc.ServerStreamingServer[workpb.Number]) error {
	for value := uint32(1); value <= req.GetTo(); value++ {
		if value > 1 {
			if err := sleep(out.Context(), req.GetPauseMillis()); err != nil {
				return err
			}
		}
		if err := out.Send(&workpb.Number{Value: value}); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) Sum(numbers grpc.ClientStreamingServer[workpb.Number, workpb.Number]) error {
	sum := &workpb.Number{}
	for {
		number, err := numbers.Recv()
		if errors.Is(err, io.EOF) {
			return numbers.SendAndClose(sum)
		}
		if err != nil {
			return err
		}
		sum.Value += number.GetValue()
	}
}

func (w *work) Chat(stream grpc.BidiStreamingServer[workpb.ChatMessage, workpb.ChatMessage]) error {
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&workpb.ChatMessage{Text: "re: " + message.GetText()}); err != nil {
			return err
		}
	}
}

func (w *work) Fail(ctx context.Context, req *workpb.FailRequest) (*workpb.FailReply, error) {
	executions := strconv.FormatInt(w.executions.Add(1), 10)
	if err := grpc.SetTrailer(ctx, metadata.Pairs("x-executions", executions)); err != nil {
		return nil, err
	}
	failure := status.New(codes.Code(req.GetCode()), req.GetMessage())
	failure, err := failure.WithDetails(&workpb.FailDetail{Reason: req.GetReason()})
	if err != nil {
		return nil, err
	}
	return nil, failure.Err()
}

func (w *work) Meta(ctx context.Context, req *workpb.MetaRequest) (*workpb.MetaReply, error) {
	got, _ := metadata.FromIncomingContext(ctx)
	if err := grpc.SetHeader(ctx, pick(got, req.GetHeaders())); err != nil {
		return nil, err
	}
	return &workpb.MetaReply{}, grpc.SetTrailer(ctx, pick(got, req.GetTrailers()))
}

func pick(md metadata.MD, keys []string) metadata.MD {
	picked := metadata.MD{}
	for _, key := range keys {
		picked.Append(key, md.Get(key)...)
	}
	return picked
}

func fib(n uint32) uint32 {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

func sleep(ctx context.Context, millis uint32) error {
	select {
	case <-time.After(time.Duration(millis) * time.Millisecond):
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

func listen(addr string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return net.Listen("unix", path)
	}
	return net.Listen("tcp", addr)
}

func main() {
	if err := serve(); err != nil {
		log.Fatal(err)
	}
}

func serve() error {
	listener, err := listen(cmp.Or(os.Getenv("CABRANK_ADDR"), "127.0.0.1:50051"))
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	workpb.RegisterWorkServer(server, &work{name: cmp.Or(os.Getenv("CABRANK_WORKER"), "go")})
	healthpb.RegisterHealthServer(server, health.NewServer())

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	context.AfterFunc(ctx, server.GracefulStop)
	return server.Serve(listener)
}
