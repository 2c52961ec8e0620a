//go:build real || soak

package lab_test

import (
	"context"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/cabrank/cabrank/examples/echo/go/echopb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/test/real/harness"
)

// The servers of examples/echo answer alike and end in order, and the scenario languages
// measures them.
func TestLanguages(t *testing.T) {
	languages(t, []string{"ruby", "python", "asyncio", "node", "connect", "go"})
}

// languages does with some of the servers what TestLanguages says.
func languages(t *testing.T, names []string) {
	t.Helper()
	t.Chdir(harness.Root(t))
	s, err := scenario.Builtin("languages", nil)
	testkit.Must(t, err)
	for _, name := range names {
		echoes(t, name, s.Arm(name).Workers.Command)
	}
	s.Loads = s.Loads[:1]
	s.Loads[0].Arms = nil
	s.Arms = slices.DeleteFunc(s.Arms, func(a scenario.Arm) bool {
		name, two := strings.CutSuffix(a.Name, " x2")
		return !two || !slices.Contains(names, name)
	})
	eachOnce(t, s)
}

// echoes calls one server alone and ends it in the middle of a stream.
func echoes(t *testing.T, name string, command []string) {
	t.Helper()
	port := strconv.Itoa(testkit.FreePorts(t, 1))
	server := harness.StartLangProcess(t, []string{"PORT=" + port}, command)
	conn := harness.Dial(t, net.JoinHostPort("127.0.0.1", port))
	ctx, cancel := context.WithTimeout(t.Context(), harness.LangBound)
	defer cancel()
	health, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
	testkit.Need(t, err == nil && health.GetStatus() == healthpb.HealthCheckResponse_SERVING, "health of %s: %v, %v", name, health, err)
	client := echopb.NewEchoClient(conn)
	reply, err := client.Say(ctx, &echopb.EchoRequest{Text: "hä", CpuMs: 5})
	testkit.Want(t, err == nil && reply.GetText() == "hä" && reply.GetNumber() == 1, "%s says %v, %v", name, reply, err)
	stream, err := client.Repeat(ctx, &echopb.EchoRequest{Text: "a", CpuMs: 100, Count: 5})
	testkit.Need(t, err == nil, "%s: %v", name, err)
	for number := uint32(1); number <= 5; number++ {
		reply, err := stream.Recv()
		testkit.Want(t, err == nil && reply.GetText() == "a" && reply.GetNumber() == number,
			"answer %d of %s: %v, %v", number, name, reply, err)
		if number == 1 {
			server.Signal(syscall.SIGTERM)
		}
	}
	if reply, err := stream.Recv(); err != io.EOF { //nolint:errorlint // it is that of grpc
		t.Errorf("the end of %s's stream: %v, %v", name, reply, err)
	}
	code := server.ExitCode(harness.LangBound)
	testkit.Want(t, code == 0 && server.Output() == "", "%s ended with %d, and wrote %q", name, code, server.Output())
}
