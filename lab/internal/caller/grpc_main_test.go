package caller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// grpcServer is a real grpc-go server. Its methods, of any service:
//
//	Echo     answers with the last message
//	Count    answers one message with three
//	Sum      answers all messages with one, of 8 bytes
//	Each     answers each message at once
//	Trailer  as Echo, and names the worker in a trailer
//	Fail     fails with RESOURCE_EXHAUSTED
//	Hang     waits until the call is given up
//	Refuse   ends with OK or an error before it reads, by what the first message says
type grpcServer struct {
	grpc  *grpc.Server
	addr  string
	conns atomic.Int64 // accepted
	calls atomic.Int64
}

// countingListener counts what it accepts.
type countingListener struct {
	net.Listener

	n *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.n.Add(1)
	}
	return conn, err
}

// serveGRPC starts a server that calls itself name, until the test ends.
func serveGRPC(t testing.TB, network, addr, name string) *grpcServer {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &grpcServer{addr: l.Addr().String()}
	s.grpc = grpc.NewServer(grpc.ForceServerCodecV2(grpcCodec{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		s.calls.Add(1)
		method, _ := grpc.MethodFromServerStream(stream)
		if method == "/test.Service/Trailer" {
			stream.SetTrailer(metadata.Pairs("worker", name))
			method = "/test.Service/Echo"
		} else {
			stream.SetHeader(metadata.Pairs("worker", name))
		}
		return handle(method, stream)
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.grpc.Serve(countingListener{l, &s.conns})
	}()
	t.Cleanup(func() { s.grpc.Stop(); <-done })
	return s
}

func handle(method string, stream grpc.ServerStream) error {
	switch method {
	case "/test.Service/Fail":
		return status.Error(codes.ResourceExhausted, "no thread is free")
	case "/test.Service/Hang":
		<-stream.Context().Done()
		return status.FromContextError(stream.Context().Err()).Err()
	case "/test.Service/Refuse":
		return status.Error(codes.PermissionDenied, "not you")
	}
	var size int
	for n := 0; ; n++ {
		err := stream.RecvMsg(&size)
		if errors.Is(err, io.EOF) {
			return finish(method, stream, n, size)
		}
		if err != nil {
			return err
		}
		if method == "/test.Service/Each" {
			if err := stream.SendMsg(make([]byte, size)); err != nil {
				return err
			}
		}
	}
}

// finish answers what is answered at the end of the messages.
func finish(method string, stream grpc.ServerStream, n, size int) error {
	switch method {
	case "/test.Service/Echo":
		return stream.SendMsg(make([]byte, size))
	case "/test.Service/Sum":
		return stream.SendMsg(fmt.Appendf(nil, "%08d", n))
	case "/test.Service/Count":
		for range 3 {
			if err := stream.SendMsg(make([]byte, size)); err != nil {
				return err
			}
		}
	}
	return nil
}

// grpcClientOf returns one of a method of the server, until the test ends.
func grpcClientOf(t testing.TB, s *grpcServer, method string, change func(*Options)) Caller {
	t.Helper()
	o := Options{
		Target: s.addr, Method: "/test.Service/" + method, WorkerKey: "worker",
		Messages: func(uint64) [][]byte { return [][]byte{[]byte("12345")} },
	}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// cancelled is a context that has ended.
func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
