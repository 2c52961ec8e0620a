package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/examples/go/workpb"
)

// BootsSuffix is behind the path of a ledger: the starts of processes have a
// file of their own, which stays short.
const BootsSuffix = ".boots"

// Kinds of entries in a ledger.
const (
	EntryBoot  = "boot"  // of a process; what is its worker's name
	EntryStart = "start" // of a call; what is its id
	EntryEnd   = "end"   // of a call, before the answer leaves
)

// openLedger opens a ledger for writing.
func openLedger(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

// enter writes one entry: kind, pid, nanoseconds since 1970, what. One write of
// less than a page to a file opened for appending is whole, also beside those of
// other processes, and it is in the file when the process is killed after it.
func enter(ledger *os.File, kind, what string) error {
	_, err := fmt.Fprintf(ledger, "%s %d %d %s\n", kind, os.Getpid(), time.Now().UnixNano(), what)
	return err
}

// chaosWorkerRole as the first argument makes the test binary a worker that
// enters every start and end of a call in a ledger: chaos-worker LEDGER.
const chaosWorkerRole = "chaos-worker"

// ChaosWorker returns the command line of a worker that writes to a ledger.
func ChaosWorker(t testing.TB, ledger string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, chaosWorkerRole, ledger}
}

// runChaosWorker serves Work at CABRANK_ADDR until SIGTERM.
func runChaosWorker(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s wants one argument, the ledger", chaosWorkerRole)
	}
	calls, err := openLedger(args[0])
	if err != nil {
		return err
	}
	boots, err := openLedger(args[0] + BootsSuffix)
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	listener, err := ListenFault(os.Getenv("CABRANK_ADDR"))
	if err != nil {
		return err
	}
	service := &chaosService{ledger: calls, name: os.Getenv("CABRANK_WORKER")}
	if err := enter(boots, EntryBoot, service.name); err != nil {
		return err
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(service.unary), grpc.StreamInterceptor(service.stream))
	workpb.RegisterWorkServer(server, service)
	healthpb.RegisterHealthServer(server, health.NewServer())
	go func() { // ends with the process
		<-stop
		server.GracefulStop()
	}()
	return server.Serve(listener)
}

// chaosService is Work as far as the chaos test needs it. Every call keeps its
// slot for as long as its request says, and burns no CPU.
type chaosService struct {
	workpb.UnimplementedWorkServer
	ledger *os.File
	name   string
}

// around enters the start and the end of a call, unless it is one of cabrank's
// own.
func (s *chaosService) around(ctx context.Context, call func() error) error {
	id := strings.Join(metadata.ValueFromIncomingContext(ctx, CallIDKey), ",")
	if id == "" {
		return call()
	}
	if err := enter(s.ledger, EntryStart, id); err != nil {
		return err
	}
	failed := call()
	return errors.Join(failed, enter(s.ledger, EntryEnd, id))
}

func (s *chaosService) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
	err = s.around(ctx, func() error {
		reply, err = handler(ctx, req)
		return err
	})
	return reply, err
}

func (s *chaosService) stream(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return s.around(stream.Context(), func() error { return handler(service, stream) })
}

// rest waits as a handler does that waits for a database.
func rest(ctx context.Context, millis uint32) error {
	select {
	case <-time.After(time.Duration(millis) * time.Millisecond):
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// Io is the unary call that must not run twice.
func (s *chaosService) Io(ctx context.Context, req *workpb.IoRequest) (*workpb.IoReply, error) {
	return &workpb.IoReply{Millis: req.GetMillis(), Worker: s.name}, rest(ctx, req.GetMillis())
}

// Cpu is the unary call that is marked idempotent; n are its milliseconds.
//
//nolint:staticcheck // the .proto file gives the name
func (s *chaosService) Cpu(ctx context.Context, req *workpb.CpuRequest) (*workpb.CpuReply, error) {
	return &workpb.CpuReply{Value: req.GetN(), Worker: s.name}, rest(ctx, req.GetN())
}

// Count rests before each number, the first too: until then nothing of the
// answer is out, and the call may be made again.
func (s *chaosService) Count(req *workpb.CountRequest, out grpc.ServerStreamingServer[workpb.Number]) error {
	for value := uint32(1); value <= req.GetTo(); value++ {
		if err := rest(out.Context(), req.GetPauseMillis()); err != nil {
			return err
		}
		if err := out.Send(&workpb.Number{Value: value}); err != nil {
			return err
		}
	}
	return nil
}

// Chat echoes each message.
func (s *chaosService) Chat(stream grpc.BidiStreamingServer[workpb.ChatMessage, workpb.ChatMessage]) error {
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(message); err != nil {
			return err
		}
	}
}
