package webdoors_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // for the worker
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/methods"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/schema"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/web"
	"github.com/cabrank/cabrank/internal/webdoors"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { testkit.VerifyMain(m) }

// soon bounds waits for what should happen at once.
const soon = 30 * time.Second

const work = "/cabrank.example.v1.Work/"

// worker serves Work.
type worker struct {
	workpb.UnimplementedWorkServer

	seen      chan metadata.MD // of Io, as its deadlines
	deadlines chan time.Duration
	release   chan struct{}
	cancelled atomic.Int32
}

// Io waits until it is let go, if it is asked for more than nothing.
func (w *worker) Io(ctx context.Context, r *workpb.IoRequest) (*workpb.IoReply, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	left := time.Duration(0)
	if deadline, ok := ctx.Deadline(); ok {
		left = time.Until(deadline)
	}
	w.seen <- md
	w.deadlines <- left
	if r.GetMillis() > 0 {
		select {
		case <-w.release:
		case <-ctx.Done():
			w.cancelled.Add(1)
			return nil, ctx.Err()
		}
	}
	return &workpb.IoReply{Millis: r.GetMillis(), Worker: "w"}, nil
}

// Count waits behind each message but the last until it is let go, if it is asked for a pause.
func (w *worker) Count(r *workpb.CountRequest, out grpc.ServerStreamingServer[workpb.Number]) error {
	for i := range r.GetTo() {
		if i > 0 && r.GetPauseMillis() > 0 {
			<-w.release
		}
		if err := out.Send(&workpb.Number{Value: i + 1}); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) Sum(numbers grpc.ClientStreamingServer[workpb.Number, workpb.Number]) error {
	sum := uint32(0)
	for {
		n, err := numbers.Recv()
		if errors.Is(err, io.EOF) {
			return numbers.SendAndClose(&workpb.Number{Value: sum})
		}
		if err != nil {
			return err
		}
		sum += n.GetValue()
	}
}

func (w *worker) Fail(_ context.Context, r *workpb.FailRequest) (*workpb.FailReply, error) {
	s, err := status.New(codes.Code(r.GetCode()), r.GetMessage()).WithDetails(&workpb.FailDetail{Reason: r.GetReason()})
	if err != nil {
		return nil, err
	}
	return nil, s.Err()
}

func (w *worker) Meta(ctx context.Context, r *workpb.MetaRequest) (*workpb.MetaReply, error) {
	in, _ := metadata.FromIncomingContext(ctx)
	pick := func(names []string) metadata.MD {
		out := metadata.MD{}
		for _, name := range names {
			out[name] = in.Get(name)
		}
		return out
	}
	_ = grpc.SetHeader(ctx, pick(r.GetHeaders()))
	_ = grpc.SetTrailer(ctx, pick(r.GetTrailers()))
	return &workpb.MetaReply{}, nil
}

// house is a relay on loopback with a worker, and doors.
type house struct {
	*relay.Relay
	*worker
	addr string
}

// newHouse starts one whose pages are of known origins; it ends with the test.
func newHouse(t testing.TB, known door.Origins, change ...func(*relay.Options)) *house {
	t.Helper()
	h := &house{worker: &worker{seen: make(chan metadata.MD, 100), deadlines: make(chan time.Duration, 100), release: make(chan struct{})}}
	var doors *webdoors.Doors
	o := relay.Options{
		Shards: 1, QueueLength: 100, QueueTimeout: soon, MinReady: 1, OnCancel: rank.Free,
		BufferTotal: 64 << 20, HeaderList: 16 << 10, MaxStreams: 100, MaxHops: 8, Keys: callers.Keys{By: callers.ByPeer},
		Limits: relay.Limits{Connections: 100, Handshake: soon, Window: 64 << 10, MaxWindow: 1 << 20, Buffer: 16 << 20},
		Log:    slog.New(slog.DiscardHandler), Random: func() float64 { return 0.5 },
		Other: func(head relay.Head) func(*relay.Exchange) { return doors.Other(head) },
	}
	for _, f := range change {
		f(&o)
	}
	var http1 *web.HTTP1
	o.HTTP1 = func(g *relay.Guest) { http1.ServeConn(g) }
	h.Relay = relay.New(o)
	doors = webdoors.New(webdoors.Options{
		Origins: func() door.Origins { return known }, Schema: schema.New(schema.Options{Open: methods.Reflection(h.Relay), Limit: soon}),
		MayRepeat: h.MayRepeat, Log: slog.New(slog.DiscardHandler),
	})
	http1 = web.NewHTTP1(web.Limits{Head: soon, HeadBytes: 16 << 10, Proxies: o.Proxies}, nil, doors.Find, o.Log)
	ln := listen(t)
	h.addr = ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- h.Serve(ln) }() // ended by Close
	t.Cleanup(func() {
		h.Close()
		http1.Close()
		err := <-served
		testkit.Want(t, errors.Is(err, door.ErrClosed), "%v", err)
		testkit.Eventually(t, soon, "the last buffer to come back", func() bool { return h.Stats().Buffered == 0 })
	})
	h.startWorker(t)
	return h
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	ln := testkit.Listen(t)
	return ln
}

func (h *house) startWorker(t testing.TB) {
	t.Helper()
	ln, server := listen(t), grpc.NewServer()
	workpb.RegisterWorkServer(server, h.worker)
	reflection.Register(server)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(ln) }() // ends with Stop
	t.Cleanup(func() { server.Stop(); <-done })
	h.Up(h.AddEndpoint("w1", 2, true), "tcp", ln.Addr().String())
}

// form is one of the forms in which callers speak gRPC-Web.
type form struct {
	text, http2 bool
}

func (f form) String() string {
	name := "binary over HTTP/1"
	if f.http2 {
		name = "binary over HTTP/2"
	}
	if f.text {
		return strings.Replace(name, "binary", "text", 1)
	}
	return name
}

// forms are all of them.
func forms() []form { return []form{{}, {text: true}, {http2: true}, {true, true}} }

// client returns one that keeps its connections until the test ends.
func (f form) client(t testing.TB) *http.Client {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!f.http2)
	protocols.SetUnencryptedHTTP2(f.http2)
	transport := &http.Transport{Protocols: protocols, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// answer is what has come of a call.
type answer struct {
	*http.Response
	messages [][]byte
	trailers map[string][]string // by their names in small letters
}

// request returns a call of a method with messages; its caller may leave by ctx.
func (f form) request(ctx context.Context, t testing.TB, h *house, method string, messages []proto.Message, fields ...string) *http.Request {
	t.Helper()
	body := &strings.Builder{}
	for _, m := range messages {
		content, err := proto.Marshal(m)
		testkit.Must(t, err)
		frame := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(content))), content...)
		if f.text { // each has padding of its own
			frame = []byte(base64.StdEncoding.EncodeToString(frame))
		}
		body.Write(frame)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+h.addr+work+method, strings.NewReader(body.String()))
	testkit.Must(t, err)
	r.Header.Set("Content-Type", "application/grpc-web+proto")
	if f.text {
		r.Header.Set("Content-Type", "application/grpc-web-text+proto")
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	return r
}

// call makes a call and reads its answer.
func (f form) call(t testing.TB, c *http.Client, h *house, method string, message proto.Message, fields ...string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	return f.do(t, c, f.request(ctx, t, h, method, []proto.Message{message}, fields...))
}

func (f form) do(t testing.TB, c *http.Client, r *http.Request) answer {
	t.Helper()
	response, err := c.Do(r)
	testkit.Must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	testkit.Must(t, err)
	a := answer{Response: response, trailers: map[string][]string{}}
	for rest := f.decoded(t, body); len(rest) > 0; {
		size := binary.BigEndian.Uint32(rest[1:])
		frame := rest[5 : 5+size]
		if rest[0] == 0x80 {
			for line := range strings.SplitSeq(strings.TrimSuffix(string(frame), "\r\n"), "\r\n") {
				name, value, _ := strings.Cut(line, ": ")
				a.trailers[name] = append(a.trailers[name], value)
			}
		} else {
			a.messages = append(a.messages, frame)
		}
		rest = rest[5+size:]
	}
	return a
}

// decoded returns a body whose pieces have been encoded one by one.
func (f form) decoded(t testing.TB, body []byte) (plain []byte) {
	t.Helper()
	if !f.text {
		return body
	}
	for ; len(body) > 0; body = body[4:] {
		group, err := base64.StdEncoding.DecodeString(string(body[:4]))
		testkit.Must(t, err)
		plain = append(plain, group...)
	}
	return plain
}

// told returns a trailer.
func (a answer) told(name string) string { return strings.Join(a.trailers[name], ",") }
