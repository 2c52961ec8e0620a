package methods_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	pb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/methods"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/testkit"
)

func TestTakes(t *testing.T) {
	m := methods.New(methods.Options{Patterns: []string{"/shop.Cart/*", "/shop.Admin/Show"}})
	for uri, want := range map[string]bool{
		"/shop.Cart/Add": true, "/shop.Cart/": true, "/shop.Admin/Show": true, "/shop.Admin/Drop": false,
		"shop.Cart/Add": false, "": false, "/": false, "/shop.Cart": false, "/shop.Cart/Add/More": false, "test.echo": false,
	} {
		testkit.Equal(t, m.Takes(uri), want, "%q", uri)
	}
	got := methods.Services([]string{"/a.B/*", "/a.B/C", "/d.E/F"})
	testkit.Want(t, slices.Equal(got, []string{"a.B", "d.E"}), "%q", got)
}

// A call has a result, or an error with the name of its code and a message.
func TestResults(t *testing.T) {
	h := newHouse(t, nil)
	close(h.release)
	for _, c := range []struct{ path, args, want string }{
		{ioPath, `{"millis": 3}`, `{"millis":3,"worker":"w"}`},
		{ioPath, `{"millis": 0, "notThere": [1]}`, `{"millis":0,"worker":""}`},
		{ioPath, "", `{"millis":0,"worker":""}`},
		{ioPath, "null", `{"millis":0,"worker":""}`},
		{ioPath, `{"millis": "many"}`, `{"error":{"code":"invalid_argument","message":"cabrank.example.v1.IoRequest: (line 1:12): invalid value for uint32 field millis: \"many\""}}`},
		{ioPath, `[]`, `{"error":{"code":"invalid_argument","message":"cabrank.example.v1.IoRequest: syntax error (line 1:1): unexpected token ["}}`},
		{cpuPath, `{}`, `{"error":{"code":"unimplemented","message":"method Cpu not implemented"}}`},
		{"/" + work + "/Nothing", `{}`, `{"error":{"code":"unimplemented","message":"there is no such method"}}`},
		{"/" + work + "/Sum", `{}`, `{"error":{"code":"unimplemented","message":"its caller sends a stream of messages, which cannot be done over a socket"}}`},
		{"/" + work + "/Count", `{}`, `{"error":{"code":412,"message":"the function has several results: call it with credit"}}`},
	} {
		got := h.call(t.Context(), c.path, c.args, soon).result(t)
		testkit.Want(t, got.err == nil && got.result == c.want, "%s %s: %s %v", c.path, c.args, got.result, got.err)
	}
	o := h.make(t.Context(), broker.Call{URI: "/" + work + "/Nothing", IfServed: true, Timeout: soon})
	err := o.taken(t)
	testkit.Want(t, errors.Is(err, broker.ErrNobody), "%v", err)
}

// Workers learn who calls, and the time that there is.
func TestMetadata(t *testing.T) {
	h := newHouse(t, nil)
	h.call(t.Context(), ioPath, `{}`, 5*time.Second).result(t)
	md := receive(t, h.seen)
	for name, want := range map[string]string{
		"x-forwarded-for": "192.0.2.7", "x-cabrank-user": "%C3%84nn", "x-cabrank-socket": "0b0d", "x-cabrank-hops": "1",
	} {
		if got := md.Get(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	h.caller = &broker.Caller{ID: "0b0d", Address: "192.0.2.7", User: "bob"} // the same socket, with another token
	h.call(t.Context(), ioPath, `{}`, 5*time.Second).result(t)
	if got := receive(t, h.seen).Get("x-cabrank-user"); len(got) != 1 || got[0] != "bob" {
		t.Errorf("%q", got)
	}
	n := h.relay.Stats().Doors[methods.Door]["OK"]
	testkit.Want(t, n >= 2, "%d calls of the door", n)
}

// The worker is told when a call is not wanted any more: by its context, by the end of
// its socket, by its deadline.
func TestCallsEnd(t *testing.T) {
	h := newHouse(t, nil)
	wait := func(n int32) {
		t.Helper()
		testkit.Eventually(t, soon, "the worker to be told", func() bool { return h.cancelled.Load() == n })
	}
	ctx, cancel := context.WithCancel(t.Context())
	o := h.call(ctx, ioPath, `{"millis":1}`, soon)
	testkit.Must(t, o.taken(t))
	receive(t, h.seen)
	cancel()
	if got := receive(t, o.answered); !errors.Is(got.err, context.Canceled) {
		t.Errorf("%+v", got)
	}
	wait(1)
	o = h.call(t.Context(), ioPath, `{"millis":1}`, 100*time.Millisecond)
	if got := o.result(t); !errors.Is(got.err, broker.ErrExpired) {
		t.Errorf("%+v", got)
	}
	wait(2)
	receive(t, h.seen)
	o = h.call(t.Context(), ioPath, `{"millis":1}`, soon)
	receive(t, h.seen)
	h.Left(h.caller)
	o.result(t)
	wait(3)
}

// The timeout of a method ends its calls over sockets too, whose own time is longer: the worker
// is told, and so is the caller.
func TestTimeoutOfAMethod(t *testing.T) {
	h := newHouse(t, nil, func(o *relay.Options) {
		o.Methods = []stats.MethodRule{{Pattern: ioPath, Timeout: 100 * time.Millisecond}}
	})
	got := h.call(t.Context(), ioPath, `{"millis":1}`, soon).result(t)
	testkit.Want(t, strings.Contains(got.result, "deadline exceeded") || strings.Contains(fmt.Sprint(got.err), "deadline exceeded"),
		"%+v", got)
	testkit.Eventually(t, soon, "the worker to be told", func() bool { return h.cancelled.Load() == 1 })
}

// A call waits in the queue, which has acknowledged it; one that finds no place is
// refused with 503, one above what a caller may do with 429.
func TestOverload(t *testing.T) {
	h := newHouse(t, nil, func(o *relay.Options) {
		o.QueueLength, o.Keys = 1, callers.Keys{By: callers.ByPeer, Concurrent: 4}
		o.Rank.StreamSlots = 2 // both, also for a method of which no call has ended
	})
	var all []outcome
	for range 3 { // two slots, one place
		o := h.call(t.Context(), ioPath, `{"millis":1}`, soon)
		testkit.Must(t, o.taken(t))
		all = append(all, o)
	}
	want := func(code int, text string) {
		t.Helper()
		err := h.call(t.Context(), ioPath, `{"millis":1}`, soon).taken(t)
		own, ok := errors.AsType[*broker.CodeError](err)
		testkit.Want(t, ok && own.Code == code && own.Text == text, "%v", err)
	}
	want(503, "cabrank: queue full")
	close(h.release)
	for _, o := range all {
		receive(t, o.answered)
	}
}

func TestTooManyCallsOfOne(t *testing.T) {
	h := newHouse(t, nil, func(o *relay.Options) { o.Keys = callers.Keys{By: callers.ByPeer, Concurrent: 2} })
	for range 2 {
		testkit.Must(t, h.call(t.Context(), ioPath, `{"millis":1}`, soon).taken(t))
	}
	err := h.call(t.Context(), ioPath, `{"millis":1}`, soon).taken(t)
	own, ok := errors.AsType[*broker.CodeError](err)
	testkit.Want(t, ok && own.Code == 429, "%v", err)
	h.Left(h.caller)
}

// An answer that is too long is not held, and a long one is.
func TestLongAnswers(t *testing.T) {
	h := newHouse(t, nil)
	for _, length := range []int{long, 100_000, 4<<20 - 10} {
		got := h.call(t.Context(), ioPath, fmt.Sprintf(`{"millis":%d}`, length), soon).result(t)
		testkit.Want(t, len(got.result) == length+len(`{"millis":0,"worker":""}`),
			"%d: %d bytes, %v: %.100s", length, len(got.result), got.err, got.result)
	}
	got := h.call(t.Context(), ioPath, `{"millis":4194304}`, soon).result(t)
	testkit.Want(t, got.result == `{"error":{"code":"resource_exhausted","message":"a message of the answer is longer than 4 MiB"}}`,
		"%.200s %v", got.result, got.err)
}

// taker takes results of a stream, one for each credit.
type taker struct {
	credit  chan struct{}
	results chan string
}

func (s taker) Send(ctx context.Context, result json.RawMessage) error {
	select {
	case <-s.credit:
		s.results <- string(result)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
func (taker) Offer(json.RawMessage) bool { return false }
func (taker) Watch(func(int))            {}

// A stream comes message by message, each for a credit, and ends.
func TestStream(t *testing.T) {
	h := newHouse(t, nil)
	s := taker{make(chan struct{}, 100), make(chan string, 100)}
	o := h.make(t.Context(), broker.Call{URI: "/" + work + "/Count", Args: json.RawMessage(`{"to":3}`), Stream: s, Timeout: soon})
	testkit.Must(t, o.taken(t))
	for _, want := range []string{`{"value":1}`, `{"value":2}`, `{"value":3}`} {
		s.credit <- struct{}{}
		testkit.Equal(t, receive(t, s.results), want, "the result")
	}
	testkit.Equal(t, receive(t, o.answered), reply{}, "the answer")
	o = h.make(t.Context(), broker.Call{URI: "/" + work + "/Count", Args: json.RawMessage(`{"to":3}`), Stream: s, Timeout: 100 * time.Millisecond})
	got := o.result(t)
	testkit.Want(t, errors.Is(got.err, broker.ErrExpired), "without credit: %+v", got)
}

// With protobuf no schema is needed, and errors have the code's number.
func TestProtobuf(t *testing.T) {
	h := newHouse(t, func(*grpc.Server) {})
	close(h.release)
	body, err := proto.Marshal(&workpb.IoRequest{Millis: 7})
	testkit.Must(t, err)
	message := func(c broker.Call) (*workpb.IoReply, error) {
		r := &workpb.IoReply{}
		c.Content, c.Timeout = broker.Protobuf, soon
		o := h.make(t.Context(), c)
		testkit.Must(t, o.taken(t))
		got := receive(t, o.answered)
		testkit.Must(t, proto.Unmarshal([]byte(got.result), r))
		return r, got.err
	}
	if r, err := message(broker.Call{URI: ioPath, Args: body}); err != nil || r.GetMillis() != 7 {
		t.Errorf("%+v %v", r, err)
	}
	_, err = message(broker.Call{URI: cpuPath})
	own, ok := errors.AsType[*broker.CodeError](err)
	testkit.Want(t, ok && own.Code == 12 && own.Text == "method Cpu not implemented", "%v", err)
	for _, name := range []string{"", "Io\r\nx-admin: 1", "Io\x00", "Io?x", "Io Io", "7", strings.Repeat("\u00e9", 100)} {
		_, err = message(broker.Call{URI: "/" + work + "/" + name, Args: body})
		testkit.Want(t, err != nil && err.Error() == "there is no such method", "%q: %v", name, err)
	}
	if got := h.call(t.Context(), ioPath, `{}`, soon).result(t); !strings.Contains(got.result, `"unimplemented","message":"the servers do not describe`) {
		t.Errorf("%+v", got)
	}
	s := taker{make(chan struct{}, 100), make(chan string, 100)}
	s.credit <- struct{}{}
	_, err = message(broker.Call{URI: ioPath, Args: body, Stream: s})
	testkit.Want(t, err == nil && receive(t, s.results) != "", "a method that nobody describes, for who takes several results: %v", err)
}

// Without any worker calls wait for the schema, then they are refused.
func TestNoWorker(t *testing.T) {
	h := newHouse(t, nil, func(o *relay.Options) { o.QueueTimeout = 50 * time.Millisecond })
	h.relay.Down(h.place)
	err := h.call(t.Context(), ioPath, `{}`, soon).taken(t)
	own, ok := errors.AsType[*broker.CodeError](err)
	testkit.Want(t, ok && own.Code == 503, "%v", err)
}

// describer is a worker that does not come to an end with what it says of itself.
type describer struct {
	pb.UnimplementedServerReflectionServer

	told atomic.Int64 // bytes
}

func (d *describer) ServerReflectionInfo(stream grpc.BidiStreamingServer[pb.ServerReflectionRequest, pb.ServerReflectionResponse]) error {
	for n := 0; ; n++ {
		if _, err := stream.Recv(); err != nil {
			return err
		}
		encoded, err := proto.Marshal(&descriptorpb.FileDescriptorProto{
			Name: new(fmt.Sprint(n)), Dependency: []string{fmt.Sprint(n + 1)}, Package: new(strings.Repeat("x", 1<<20)),
		})
		if err != nil {
			return err
		}
		d.told.Add(int64(len(encoded)))
		answer := &pb.ServerReflectionResponse{MessageResponse: &pb.ServerReflectionResponse_FileDescriptorResponse{
			FileDescriptorResponse: &pb.FileDescriptorResponse{FileDescriptorProto: [][]byte{encoded}},
		}}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
}

// What a worker says of itself is bounded in all, not message by message.
func TestLongDescription(t *testing.T) {
	d := &describer{}
	h := newHouse(t, func(s *grpc.Server) { pb.RegisterServerReflectionServer(s, d) })
	err := h.call(t.Context(), ioPath, `{}`, soon).taken(t)
	own, ok := errors.AsType[*broker.CodeError](err)
	testkit.Want(t, ok && own.Code == 503 && strings.Contains(own.Text, "more than 16 MiB"), "%v", err)
	if told := d.told.Load(); told > 17<<20 {
		t.Errorf("it has told %d bytes", told)
	}
}
