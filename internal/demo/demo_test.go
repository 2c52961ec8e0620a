package demo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/demo"
	"github.com/cabrank/cabrank/internal/demo/demopb"
	"github.com/cabrank/cabrank/internal/testkit"
)

// startWorker serves a greeter on a unix socket until the test or stop ends it.
func startWorker(t *testing.T, opts demo.WorkerOptions) (conn *grpc.ClientConn, stop func() error) {
	t.Helper()
	opts.Addr = "unix:" + filepath.Join(t.TempDir(), "greeter.sock")
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- demo.Serve(ctx, opts) }()
	stop = func() error {
		cancel()
		err := <-served
		served <- err
		return err
	}
	t.Cleanup(func() {
		err := stop()
		testkit.Want(t, err == nil, "Serve: %v", err)
	})
	conn, err := grpc.NewClient(opts.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	check(t, conn)
	return conn, stop
}

// check waits until the worker is there and says that it serves.
func check(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	reply, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
	testkit.Need(t, err == nil && reply.GetStatus() == healthpb.HealthCheckResponse_SERVING,
		"Check: %v, %v; want SERVING", reply.GetStatus(), err)
}

func want(t *testing.T, reply *demopb.HelloReply, message string) {
	t.Helper()
	testkit.Want(t, reply.GetMessage() == message && reply.GetWorker() == "worker-1",
		"got %q of %q, want %q of worker-1", reply.GetMessage(), reply.GetWorker(), message)
}

func TestEveryReplyNamesItsWorker(t *testing.T) {
	conn, _ := startWorker(t, demo.WorkerOptions{Name: "worker-1"})
	client := demopb.NewGreeterClient(conn)

	t.Run("unary", func(t *testing.T) {
		for name, message := range map[string]string{"Ann": "Hello, Ann!", "": "Hello, world!"} {
			reply, err := client.SayHello(t.Context(), &demopb.HelloRequest{Name: name})
			testkit.Must(t, err)
			want(t, reply, message)
		}
	})
	t.Run("server stream", func(t *testing.T) {
		for count, messages := range map[uint32]int{0: 3, 5: 5, 2000: 1000} {
			stream, err := client.ListHellos(t.Context(), &demopb.ListHellosRequest{Name: "Ann", Count: count})
			testkit.Must(t, err)
			testkit.Equal(t, drain(t, stream), messages, "count %d: replies", count)
		}
	})
	t.Run("client stream", func(t *testing.T) {
		for message, names := range map[string][]string{
			"Hello, world!":          nil,
			"Hello, Ann!":            {"Ann"},
			"Hello, Ann and 2 more!": {"Ann", "Ben", "Cem"},
		} {
			stream, err := client.CollectNames(t.Context())
			testkit.Must(t, err)
			for _, name := range names {
				testkit.Must(t, stream.Send(&demopb.HelloRequest{Name: name}))
			}
			reply, err := stream.CloseAndRecv()
			testkit.Must(t, err)
			want(t, reply, message)
		}
	})
	t.Run("bidi stream", func(t *testing.T) {
		stream, err := client.Chat(t.Context())
		testkit.Must(t, err)
		for _, name := range []string{"Ann", "Ben"} {
			testkit.Must(t, stream.Send(&demopb.HelloRequest{Name: name}))
			reply, err := stream.Recv()
			testkit.Must(t, err)
			want(t, reply, "Hello, "+name+"!")
		}
		testkit.Must(t, stream.CloseSend())
		testkit.Equal(t, drain(t, stream), 0, "replies after the last name")
	})
}

func drain(t *testing.T, stream interface {
	Recv() (*demopb.HelloReply, error)
}) int {
	t.Helper()
	for n := 0; ; n++ {
		reply, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return n
		}
		testkit.Must(t, err)
		want(t, reply, "Hello, Ann!")
	}
}

func TestACallerThatLeavesEndsTheWork(t *testing.T) {
	conn, stop := startWorker(t, demo.WorkerOptions{Name: "worker-1", Work: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := demopb.NewGreeterClient(conn).SayHello(ctx, &demopb.HelloRequest{})
	testkit.Want(t, status.Code(err) == codes.DeadlineExceeded, "got %v, want DeadlineExceeded", err)
	if err := stop(); err != nil { // would wait for an hour otherwise
		t.Error(err)
	}
}

// A worker that is told to stop finishes what it has taken.
func TestServeFinishesCallsAtItsEnd(t *testing.T) {
	conn, stop := startWorker(t, demo.WorkerOptions{Name: "worker-1"})
	stream, err := demopb.NewGreeterClient(conn).Chat(t.Context())
	testkit.Must(t, err)
	greet := func(name string) {
		t.Helper()
		testkit.Must(t, stream.Send(&demopb.HelloRequest{Name: name}))
		reply, err := stream.Recv()
		testkit.Must(t, err)
		want(t, reply, "Hello, "+name+"!")
	}
	greet("Ann")
	watch := watchHealth(t, conn)
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	testkit.Equal(t, <-watch, healthpb.HealthCheckResponse_NOT_SERVING, "health at the end")
	greet("Ben")
	select {
	case err := <-stopped:
		t.Errorf("Serve ended with a call open: %v", err)
	default:
	}
	testkit.Must(t, stream.CloseSend())
	testkit.Must(t, <-stopped)
}

// watchHealth sends the first status after SERVING and hangs up.
func watchHealth(t *testing.T, conn *grpc.ClientConn) <-chan healthpb.HealthCheckResponse_ServingStatus {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	watch, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{})
	testkit.Must(t, err)
	_, err = watch.Recv()
	testkit.Must(t, err)
	changed := make(chan healthpb.HealthCheckResponse_ServingStatus, 1)
	go func() {
		defer cancel()
		reply, _ := watch.Recv()
		changed <- reply.GetStatus()
	}()
	return changed
}

func TestServeRefusesABadAddress(t *testing.T) {
	err := demo.Serve(t.Context(), demo.WorkerOptions{Addr: "8080"})
	testkit.Want(t, err != nil && strings.Contains(err.Error(), `"8080": want HOST:PORT or unix:/PATH`), "got %v", err)
}

func TestServeListensOnTCP(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer taken.Close()
	testkit.Want(t, demo.Serve(t.Context(), demo.WorkerOptions{Addr: taken.Addr().String()}) != nil, "no error for a port that is taken")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = demo.Serve(ctx, demo.WorkerOptions{Addr: "127.0.0.1:0"})
	testkit.Want(t, err == nil, "got %v although only the context has ended", err)
}

func TestCallShowsEveryAnswerOnce(t *testing.T) {
	conn, _ := startWorker(t, demo.WorkerOptions{Name: "worker-1"})
	for _, inFlight := range []int{0, 1, 5, 50} {
		seen := map[int]bool{}
		err := demo.Call(t.Context(), conn, 20, inFlight, func(a demo.Answer) {
			seen[a.Number] = true
			testkit.Want(t, a.Message == fmt.Sprintf("Hello, caller %d!", a.Number) && a.Worker == "worker-1", "got %+v", a)
		})
		testkit.Want(t, err == nil && len(seen) == 20 && seen[1] && seen[20], "%d in flight: %d answers, %v", inFlight, len(seen), err)
	}
}

func TestCallEndsAtTheFirstFailure(t *testing.T) {
	conn, stop := startWorker(t, demo.WorkerOptions{Name: "worker-1"})
	testkit.Must(t, stop())
	err := demo.Call(t.Context(), conn, 1000, 2, func(a demo.Answer) { t.Errorf("an answer: %+v", a) })
	testkit.Want(t, status.Code(err) == codes.Unavailable && strings.HasPrefix(err.Error(), "call "),
		"got %v, want the number of a call and Unavailable", err)
}

func TestShareIsATable(t *testing.T) {
	var out bytes.Buffer
	demo.Share{"worker-2": 1, "worker-1": 3}.Print(&out, demo.StyleFor(&out))
	want := "  worker-1      3   75 %  " + strings.Repeat("█", 22) + "\n" +
		"  worker-2      1   25 %  " + strings.Repeat("█", 7) + "\n"
	testkit.Want(t, out.String() == want, "got\n%swant\n%s", out.String(), want)
}
