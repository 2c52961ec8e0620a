package caller

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/cabrank/cabrank/internal/testkit"
)

// grpcServer is a real grpc-go server, which answers each call with its message.
type grpcServer struct {
	grpc  *grpc.Server
	addr  string
	conns atomic.Int64 // accepted
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
	testkit.Must(t, err)
	s := &grpcServer{addr: l.Addr().String()}
	s.grpc = grpc.NewServer(grpc.ForceServerCodecV2(grpcCodec{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		stream.SetHeader(metadata.Pairs("worker", name))
		var size int
		if err := stream.RecvMsg(&size); err != nil {
			return err
		}
		return stream.SendMsg(make([]byte, size))
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.grpc.Serve(countingListener{l, &s.conns})
	}()
	t.Cleanup(func() { s.grpc.Stop(); <-done })
	return s
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
	testkit.Must(t, err)
	t.Cleanup(c.Close)
	return c
}

// cancelled is a context that has ended.
func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
