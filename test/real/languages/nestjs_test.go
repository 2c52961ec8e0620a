//go:build real || soak

package languages_test

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// nestjs is a program of examples/nestjs, which scripts/install-deps.sh has built.
func nestjs(t *testing.T, name string) string {
	t.Helper()
	return harness.Built(t, filepath.Join(harness.Root(t), "examples", "nestjs", "dist", name), "scripts/install-deps.sh workers")
}

// startNestJS starts cabrank over one of the two servers.
func startNestJS(t *testing.T, server string) *harness.Cabrank {
	t.Helper()
	c := harness.StartCabrankEnv(t, harness.LangEnv(t), "--workers", "2", "--min-ready", "2", "--slots", "10", "--", "node", nestjs(t, server))
	c.WaitReady(harness.LangBound)
	return c
}

// Both servers answer every kind of call alike, by each protocol: cabrank translates it.
func TestNestJSServers(t *testing.T) {
	const want = `Hello, you!
0 part (chunk 1 of 3)
1 part (chunk 2 of 3)
2 part (chunk 3 of 3)
2 Aggregated 2 items: a, b
0 Echo: a
1 Echo: b
`
	all := []string{"grpc", "grpc-web", "connect"}
	for server, protocols := range map[string][]string{"standard.js": all, "connect.js": all} {
		c := startNestJS(t, server)
		for _, protocol := range protocols {
			caller := harness.StartLangProcess(t, nil, []string{"node", nestjs(t, "client.js"), "http://" + c.Addr, protocol})
			if code := caller.ExitCode(harness.LangBound); code != 0 || caller.Output() != want {
				t.Errorf("%s by %s: exit code %d, %s%s", server, protocol, code, caller.Output(), caller.Log())
			}
		}
		c.Stop()
	}
}

// A server that is told to end lets its streams end first; one whose caller has left does
// not keep it.
func TestNestJSServersEndInOrder(t *testing.T) {
	for _, server := range []string{"standard.js", "connect.js"} {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(testkit.FreePorts(t, 1)))
		serving := harness.StartLangProcess(t, []string{"CABRANK_ADDR=" + addr}, []string{"node", nestjs(t, server)})
		ctx, cancel := context.WithTimeout(t.Context(), harness.LangBound)
		left, leave := context.WithCancel(ctx)
		conn := harness.Dial(t, addr)
		_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
		testkit.Must(t, err)
		echo(t, bidiStream(left, t, conn), "left")
		staying := bidiStream(ctx, t, conn)
		echo(t, staying, "before")
		leave()
		serving.Signal(syscall.SIGTERM)
		testkit.Eventually(t, harness.LangBound, "the listener to close", func() bool {
			second, err := net.Dial("tcp", addr)
			if err == nil {
				second.Close()
			}
			return err != nil
		})
		echo(t, staying, "after")
		testkit.Is(t, errors.Join(staying.CloseSend(), staying.RecvMsg(&wrapperspb.StringValue{})), io.EOF,
			"%s: the stream ends with", server)
		serving.ExitCode(harness.LangBound)
		cancel()
	}
}

// bidiStream begins a call whose messages have a text as their first field.
func bidiStream(ctx context.Context, t *testing.T, conn *grpc.ClientConn) grpc.ClientStream {
	t.Helper()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/example.v1.ExampleService/BidiStream")
	testkit.Must(t, err)
	return stream
}

func echo(t *testing.T, stream grpc.ClientStream, text string) {
	t.Helper()
	answer := &wrapperspb.StringValue{}
	err := errors.Join(stream.SendMsg(wrapperspb.String(text)), stream.RecvMsg(answer))
	testkit.Need(t, err == nil && answer.GetValue() == "Echo: "+text, "%q comes back as %q, %v", text, answer.GetValue(), err)
}
