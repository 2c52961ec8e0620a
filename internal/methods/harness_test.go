package methods_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/methods"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/schema"
	"github.com/cabrank/cabrank/internal/testkit"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { testkit.VerifyMain(m) }

// soon bounds waits for what should happen at once.
const soon = 30 * time.Second

const (
	work    = "cabrank.example.v1.Work"
	ioPath  = "/" + work + "/Io"
	cpuPath = "/" + work + "/Cpu"
)

// long is from which number on Io answers at once, with a text of so many bytes.
const long = 10_000

// worker serves Work: Io waits until it is let go or cancelled.
type worker struct {
	workpb.UnimplementedWorkServer

	seen      chan metadata.MD
	release   chan struct{}
	cancelled atomic.Int32
}

func (w *worker) Io(ctx context.Context, r *workpb.IoRequest) (*workpb.IoReply, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	select {
	case w.seen <- md:
	default:
	}
	if r.GetMillis() == 0 {
		return &workpb.IoReply{}, nil
	}
	if r.GetMillis() >= long {
		return &workpb.IoReply{Worker: strings.Repeat("x", int(r.GetMillis()))}, nil
	}
	select {
	case <-w.release:
		return &workpb.IoReply{Millis: r.GetMillis(), Worker: "w"}, nil
	case <-ctx.Done():
		w.cancelled.Add(1)
		return nil, ctx.Err()
	}
}

func (w *worker) Count(r *workpb.CountRequest, stream grpc.ServerStreamingServer[workpb.Number]) error {
	for i := range r.GetTo() {
		if err := stream.Send(&workpb.Number{Value: i + 1}); err != nil {
			return err
		}
	}
	return nil
}

// house is a relay with a worker, and sockets' calls.
type house struct {
	*worker
	*methods.Methods

	t      testing.TB
	relay  *relay.Relay
	schema *schema.Schema
	caller *broker.Caller
	place  *relay.Endpoint
}

// newHouse starts all of it; it ends with the test.
func newHouse(t testing.TB, register func(*grpc.Server), change ...func(*relay.Options)) *house {
	t.Helper()
	h := &house{t: t, worker: &worker{seen: make(chan metadata.MD, 100), release: make(chan struct{})}}
	o := relay.Options{
		Shards: 1, QueueLength: 100, QueueTimeout: soon, MinReady: 1, OnCancel: rank.Free,
		BufferTotal: 64 << 20, HeaderList: 16 << 10, MaxStreams: 100, MaxHops: 8, Keys: callers.Keys{By: callers.ByPeer},
		Limits: relay.Limits{Connections: 100, Handshake: soon, Window: 64 << 10, MaxWindow: 1 << 20, Buffer: 16 << 20},
		Log:    slog.New(slog.DiscardHandler), Random: func() float64 { return 0.5 },
	}
	for _, f := range change {
		f(&o)
	}
	h.relay = relay.New(o)
	t.Cleanup(func() {
		h.relay.Close()
		testkit.Eventually(t, soon, "the last buffer to come back", func() bool { return h.relay.Stats().Buffered == 0 })
	})
	h.place = h.relay.AddEndpoint("w1", 2, true)
	h.relay.Up(h.place, "tcp", h.serve(register))
	h.schema = schema.New(schema.Options{
		Services: []string{work}, Open: methods.Reflection(h.relay), Limit: soon,
		Failed: func(err error) { t.Logf("reflection: %v", err) },
	})
	h.Methods = methods.New(methods.Options{Relay: h.relay, Schema: h.schema, Patterns: []string{"/" + work + "/*"}})
	h.caller = &broker.Caller{ID: "0b0d", Address: "192.0.2.7", User: "Änn"}
	return h
}

// serve starts a worker, and returns its address.
func (h *house) serve(register func(*grpc.Server)) string {
	h.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(h.t, err)
	server := grpc.NewServer()
	workpb.RegisterWorkServer(server, h.worker)
	if register == nil {
		register = func(s *grpc.Server) { reflection.Register(s) }
	}
	register(server)
	done := make(chan struct{})
	go func() { // ends with Stop
		defer close(done)
		_ = server.Serve(listener)
	}()
	h.t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return listener.Addr().String()
}

// outcome is what became of a call.
type outcome struct {
	accepted chan error
	answered chan reply
}

type reply struct {
	result string
	err    error
}

// call makes a call of JSON.
func (h *house) call(ctx context.Context, path, args string, timeout time.Duration) outcome {
	return h.make(ctx, broker.Call{URI: path, Args: json.RawMessage(args), Timeout: timeout})
}

func (h *house) make(ctx context.Context, c broker.Call) outcome {
	o := outcome{make(chan error, 2), make(chan reply, 2)}
	c.Caller = h.caller
	c.Accepted = func(err error) { o.accepted <- err }
	c.Answered = func(result json.RawMessage, err error) { o.answered <- reply{string(result), err} }
	h.Call(ctx, c)
	return o
}

// result waits for the answer, in compact form.
func (o outcome) result(t testing.TB) reply {
	t.Helper()
	err := o.taken(t)
	testkit.Need(t, err == nil, "refused: %v", err)
	r := receive(t, o.answered)
	if r.result != "" {
		r.result = compact(t, r.result)
	}
	return r
}

func (o outcome) taken(t testing.TB) error {
	t.Helper()
	return receive(t, o.accepted)
}

func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	return testkit.Take(t, from, soon, "nothing has come")
}

func compact(t testing.TB, text string) string {
	t.Helper()
	var value json.RawMessage = []byte(text)
	b, err := json.Marshal(value)
	testkit.Need(t, err == nil, "%s: %v", text, err)
	return string(b)
}
