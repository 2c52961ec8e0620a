package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // the worker takes compressed calls
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
)

// FaultWorkerRole as the first argument makes the test binary a worker: no
// build and no interpreter, and it does what a well-behaved example must not.
const FaultWorkerRole = "fault-worker"

// CallIDKey is the metadata by which a call is found in the worker's output.
const CallIDKey = "x-call-id"

// MaxFaultMessage is the largest message that the fault worker takes.
const MaxFaultMessage = 64 << 20

// FaultWorker returns the command line of a worker with these flags.
func FaultWorker(t testing.TB, flags ...string) []string {
	t.Helper()
	self, err := os.Executable()
	testkit.Must(t, err)
	return append([]string{self, FaultWorkerRole}, flags...)
}

// ChaosWorker returns the command line of one that writes to a ledger.
func ChaosWorker(t testing.TB, ledger string) []string {
	t.Helper()
	return FaultWorker(t, "-ledger", ledger)
}

// runFaultWorker serves Work at CABRANK_ADDR until SIGTERM.
func runFaultWorker(args []string) error {
	service := &faultService{name: os.Getenv("CABRANK_WORKER")}
	flags := flag.NewFlagSet(FaultWorkerRole, flag.ContinueOnError)
	boot := flags.Duration("boot", 0, "how long it takes until the worker listens")
	deaf := flags.Bool("deaf", false, "ignore SIGTERM")
	metrics := flags.Bool("metrics", false, "take the port of the metrics page, which must be free")
	mute := flags.Bool("mute", false, "have no health service")
	flags.IntVar(&service.slow, "slow", 1, "how many times as long calls take as they ask for")
	say := flags.String("say", "", "line to print at the start")
	ledger := flags.String("ledger", "", "file for entries of calls, which are printed otherwise")
	if err := flags.Parse(args); err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	if *say != "" {
		fmt.Fprintln(os.Stdout, *say)
	}
	if !*deaf {
		select {
		case <-time.After(*boot):
		case <-stop:
			return nil
		}
	}
	if *metrics {
		page, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PROMETHEUS_EXPORTER_PORT"))
		if err != nil {
			return err
		}
		defer page.Close()
	}
	listener, err := ListenFault(os.Getenv("CABRANK_ADDR"))
	if err != nil {
		return err
	}
	if *ledger != "" {
		if service.ledger, err = openLedger(*ledger, service.name); err != nil {
			return err
		}
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(MaxFaultMessage), grpc.MaxSendMsgSize(MaxFaultMessage),
		grpc.UnaryInterceptor(service.unary), grpc.StreamInterceptor(service.stream))
	workpb.RegisterWorkServer(server, service)
	if !*mute {
		healthpb.RegisterHealthServer(server, health.NewServer())
	}
	if !*deaf {
		go func() { // ends with the process
			<-stop
			server.GracefulStop()
		}()
	}
	return server.Serve(listener)
}

// ListenFault listens at what a worker is given as CABRANK_ADDR.
func ListenFault(addr string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return net.Listen("unix", path)
	}
	return net.Listen("tcp", addr)
}

// faultService is Work as far as tests need it: every call keeps its slot for as long as
// its request says, and burns no CPU. It tells of each call that has an id, so that a test
// can count what really ran: in its ledger, or by the lines "took ID" and "done ID".
type faultService struct {
	workpb.UnimplementedWorkServer
	name   string
	ledger *os.File
	slow   int
}

// around tells of the start and the end of a call.
func (s *faultService) around(ctx context.Context, call func() error) error {
	id := strings.Join(metadata.ValueFromIncomingContext(ctx, CallIDKey), ",")
	switch {
	case id == "":
		return call()
	case s.ledger == nil:
		fmt.Fprintln(os.Stdout, "took", id)
		err := call()
		if err == nil {
			fmt.Fprintln(os.Stdout, "done", id)
		}
		return err
	}
	if err := enter(s.ledger, EntryStart, id); err != nil {
		return err
	}
	failed := call()
	return errors.Join(failed, enter(s.ledger, EntryEnd, id))
}

func (s *faultService) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
	err = s.around(ctx, func() error {
		reply, err = handler(ctx, req)
		return err
	})
	return reply, err
}

func (s *faultService) stream(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
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
func (s *faultService) Io(ctx context.Context, req *workpb.IoRequest) (*workpb.IoReply, error) {
	return &workpb.IoReply{Millis: req.GetMillis(), Worker: s.name}, rest(ctx, req.GetMillis()*uint32(s.slow))
}

// Cpu is the unary call that is marked idempotent; n are its milliseconds.
//
//nolint:staticcheck // the .proto file gives the name
func (s *faultService) Cpu(ctx context.Context, req *workpb.CpuRequest) (*workpb.CpuReply, error) {
	return &workpb.CpuReply{Value: req.GetN(), Worker: s.name}, rest(ctx, req.GetN())
}

// Count rests before each number, the first too: until then nothing of the
// answer is out, and the call may be made again.
func (s *faultService) Count(req *workpb.CountRequest, out grpc.ServerStreamingServer[workpb.Number]) error {
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

// Chat echoes each message. The header tells which worker it is; with a ledger it comes
// with the first message, as that of most servers.
func (s *faultService) Chat(stream grpc.BidiStreamingServer[workpb.ChatMessage, workpb.ChatMessage]) error {
	if s.ledger == nil {
		if err := stream.SendHeader(metadata.Pairs("x-worker", s.name)); err != nil {
			return err
		}
	}
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
