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
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{self, FaultWorkerRole}, flags...)
}

// runFaultWorker serves Work at CABRANK_ADDR until SIGTERM.
func runFaultWorker(args []string) error {
	out := os.Stdout
	flags := flag.NewFlagSet(FaultWorkerRole, flag.ContinueOnError)
	boot := flags.Duration("boot", 0, "how long it takes until the worker listens")
	deaf := flags.Bool("deaf", false, "ignore SIGTERM")
	metrics := flags.Bool("metrics", false, "take the port of the metrics page, which must be free")
	say := flags.String("say", "", "line to print at the start")
	if err := flags.Parse(args); err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	if *say != "" {
		fmt.Fprintln(out, *say)
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
	server := grpc.NewServer(grpc.MaxRecvMsgSize(MaxFaultMessage), grpc.MaxSendMsgSize(MaxFaultMessage))
	workpb.RegisterWorkServer(server, &faultService{name: os.Getenv("CABRANK_WORKER"), out: out})
	healthpb.RegisterHealthServer(server, health.NewServer())
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

// faultService is Work as far as the fault tests need it. It prints "took ID"
// and "done ID" for each unary call, so that a test can count what really ran.
type faultService struct {
	workpb.UnimplementedWorkServer
	name string
	out  io.Writer
}

// Io sleeps until the time is up or its caller leaves.
func (s *faultService) Io(ctx context.Context, req *workpb.IoRequest) (*workpb.IoReply, error) {
	id := strings.Join(metadata.ValueFromIncomingContext(ctx, CallIDKey), ",")
	fmt.Fprintln(s.out, "took", id)
	select {
	case <-time.After(time.Duration(req.GetMillis()) * time.Millisecond):
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	fmt.Fprintln(s.out, "done", id)
	return &workpb.IoReply{Millis: req.GetMillis(), Worker: s.name}, nil
}

// Chat echoes each message. The header tells which worker it is.
func (s *faultService) Chat(stream grpc.BidiStreamingServer[workpb.ChatMessage, workpb.ChatMessage]) error {
	if err := stream.SendHeader(metadata.Pairs("x-worker", s.name)); err != nil {
		return err
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
