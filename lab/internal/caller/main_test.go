package caller

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/cabrank/cabrank/internal/testkit"
)

// No test leaves a goroutine or a listener behind.
func TestMain(m *testing.M) { testkit.VerifyMain(m) }

// text is what all methods take and return.
type text = wrapperspb.StringValue

// server has connect-go's handlers, which serve all three protocols. Its methods are those
// of service test.Service, Unary, Server, Client and Bidi. What they do is the first word of the
// first message:
//
//	fail   they fail with RESOURCE_EXHAUSTED
//	hang   they wait until the call is given up
//	late   they send what they have to, and fail
//
// Otherwise Unary and Client answer with the last message, Server three times with its own,
// and Bidi each message at once.
type server struct {
	name  string // of the worker that answers say
	addr  string
	web   *http.Server
	tls   *tls.Config  // for callers; nil without
	conns atomic.Int64 // accepted
	calls atomic.Int64 // that a handler has seen
	last  atomic.Value // http.Header of the last
}

// serve starts a server that calls itself one, until the test ends.
func serve(t testing.TB, change func(*http.Server)) *server {
	t.Helper()
	return serveAt(t, "one", "tcp", "127.0.0.1:0", change)
}

// serveAt starts one with a name and an address.
func serveAt(t testing.TB, name, network, addr string, change func(*http.Server)) *server {
	t.Helper()
	l, err := net.Listen(network, addr)
	testkit.Must(t, err)
	s := &server{name: name, addr: l.Addr().String()}
	if network == "unix" {
		s.addr = "unix://" + addr
	}
	s.web = &http.Server{Handler: s.handlers(), Protocols: &http.Protocols{}, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.conns.Add(1)
		}
	}}
	s.web.Protocols.SetHTTP1(true)
	s.web.Protocols.SetUnencryptedHTTP2(true)
	if change != nil {
		change(s.web)
	}
	if s.web.TLSConfig != nil {
		l = tls.NewListener(l, s.web.TLSConfig)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.web.Serve(l)
	}()
	t.Cleanup(func() { s.web.Close(); <-done })
	return s
}

func (s *server) handlers() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/test.Service/Unary", connect.NewUnaryHandler("/test.Service/Unary", func(ctx context.Context, r *connect.Request[text]) (*connect.Response[text], error) {
		s.seen(r.Header())
		response := connect.NewResponse(r.Msg)
		response.Header().Set("Worker", s.name)
		return response, s.do(ctx, r.Msg)
	}))
	mux.Handle("/test.Service/Server", connect.NewServerStreamHandler("/test.Service/Server", func(ctx context.Context, r *connect.Request[text], out *connect.ServerStream[text]) error {
		s.seen(r.Header())
		out.ResponseTrailer().Set("Worker", s.name)
		if r.Msg.GetValue() != "late" {
			if err := s.do(ctx, r.Msg); err != nil {
				return err
			}
		}
		for range 3 {
			if err := out.Send(r.Msg); err != nil {
				return err
			}
		}
		return s.do(ctx, r.Msg)
	}))
	mux.Handle("/test.Service/Client", connect.NewClientStreamHandler("/test.Service/Client", func(ctx context.Context, in *connect.ClientStream[text]) (*connect.Response[text], error) {
		s.seen(in.RequestHeader())
		last := &text{}
		for in.Receive() {
			last = proto.CloneOf(in.Msg())
			if err := s.do(ctx, last); err != nil {
				return nil, err
			}
		}
		response := connect.NewResponse(last)
		response.Trailer().Set("Worker", s.name)
		return response, in.Err()
	}))
	mux.Handle("/test.Service/Bidi", connect.NewBidiStreamHandler("/test.Service/Bidi", func(ctx context.Context, both *connect.BidiStream[text, text]) error {
		s.seen(both.RequestHeader())
		both.ResponseHeader().Set("Worker", s.name)
		for {
			m, err := both.Receive()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err == nil && m.GetValue() != "late" {
				err = s.do(ctx, m)
			}
			if err == nil {
				err = both.Send(m)
			}
			if err == nil {
				err = s.do(ctx, m)
			}
			if err != nil {
				return err
			}
		}
	}))
	return mux
}

func (s *server) seen(h http.Header) {
	s.calls.Add(1)
	s.last.Store(h.Clone())
}

// do does what a message says.
func (s *server) do(ctx context.Context, m *text) error {
	switch first, _, _ := strings.Cut(m.GetValue(), " "); first {
	case "fail", "late":
		err := connect.NewError(connect.CodeResourceExhausted, errors.New("no thread is free"))
		err.Meta().Set("Worker", "two")
		detail, wrong := connect.NewErrorDetail(durationpb.New(1))
		if wrong != nil {
			return wrong
		}
		err.AddDetail(detail)
		return err
	case "hang":
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// messages are n messages with a text.
func messages(t testing.TB, w Way, n int, value string) func(uint64) [][]byte {
	t.Helper()
	one, err := proto.Marshal(&text{Value: value})
	if w.JSON() {
		one, err = protojson.Marshal(&text{Value: value})
	}
	testkit.Must(t, err)
	all := [][]byte{}
	for range n {
		all = append(all, one)
	}
	return func(uint64) [][]byte { return all }
}

// options are those of a method of the server with so many messages of a text.
func (s *server) options(t testing.TB, w Way, method string, n int, value string) Options {
	t.Helper()
	return Options{
		Way: w, TLS: s.tls, Target: s.addr, Method: "/test.Service/" + method, WorkerKey: "worker", Messages: messages(t, w, n, value),
		ClientStreams: method == "Client" || method == "Bidi", ServerStreams: method == "Server" || method == "Bidi",
	}
}

// methods are one of each kind.
var methods = []string{"Unary", "Server", "Client", "Bidi"}

// client returns one that calls, until the test ends.
func client(t testing.TB, o Options) Caller {
	t.Helper()
	c, err := New(o)
	testkit.Must(t, err)
	t.Cleanup(c.Close)
	return c
}

// ways are all that there are over HTTP/2.
func ways() []Way {
	return []Way{
		{},
		{Codec: jsonWord},
		{Protocol: Connect}, {Protocol: Connect, Codec: jsonWord},
		{Protocol: GRPCWeb}, {Protocol: GRPCWeb, Codec: jsonWord},
	}
}

// header is that of the last call.
func (s *server) header() http.Header {
	h, _ := s.last.Load().(http.Header)
	return h
}
