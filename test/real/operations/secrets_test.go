//go:build real || soak

package operations_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// plantedToken is what a caller would not like to find in a log.
const plantedToken = "planted-7f3a91c2"

// No value of a caller's metadata gets into a log, at any level, into the
// metrics or into what is put before the workers' lines, however the call ends;
// and the log is JSON line by line, with the workers' own lines in it.
func TestNoMetadataValueIsTold(t *testing.T) {
	t.Setenv("CABRANK_FAIR_KEY", "metadata:authorization") // the token is the callers' key
	c := harness.StartFault(t, harness.FaultWorker(t, "-say", `{"own":"json"}`), "--workers", "1", "--slots", "1",
		"--queue", "1", "--queue-timeout", "200ms", "--log-level", "debug", "--log-format", "json")
	pid := c.WaitWorkers(1)
	conn := harness.Dial(t, c.Addr)
	ctx := metadata.AppendToOutgoingContext(t.Context(),
		"authorization", "Bearer "+plantedToken, "cookie", "session="+plantedToken, "x-key-bin", plantedToken)
	for name, got := range map[string]struct{ code, want codes.Code }{
		"answered":       {callIoCode(ctx, conn), codes.OK},
		"unknown method": {callMethodCode(ctx, conn, "/no.Such/Method"), codes.Unimplemented},
		"health":         {checkHealthCode(ctx, conn), codes.OK},
	} {
		testkit.Want(t, got.code == got.want, "the call %q ended with %v, want %v", name, got.code, got.want)
	}
	sendMalformed(t, c.Addr)
	endHeldCalls(ctx, t, c, conn, pid)
	c.WaitMetric("cabrank_worker_restarts_total", 1)

	page := c.MetricsText()
	c.Stop()
	for where, text := range map[string]string{"log": c.Log(), "output": c.Output(), "metrics page": page} {
		if strings.Contains(text, plantedToken) {
			t.Errorf("the %s has the token:\n%s", where, harness.LineWith(text, plantedToken))
		}
	}
	wantJSONLines(t, c.Log())
	wantJSONLines(t, c.Output())
	testkit.Want(t, slices.Contains(strings.Split(c.Output(), "\n"), `{"worker":"worker-1","own":"json"}`),
		"a worker's line of JSON has not only its name added:\n%s", c.Output())
}

// endHeldCalls brings the ends that need a busy worker: a wait in vain, a
// deadline in the queue and at the worker, and the loss of the worker.
func endHeldCalls(ctx context.Context, t *testing.T, c *harness.Cabrank, conn *grpc.ClientConn, pid int) {
	t.Helper()
	held := harness.GoIo(ctx, conn, "held", harness.CallBound)
	c.WaitMetric("cabrank_in_flight", 1)
	harness.WantStatus(t, harness.CallIo(ctx, conn, "waits", 0).Err, codes.ResourceExhausted, "cabrank: no free slot in time")
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	got := harness.CallIo(short, conn, "short", 0)
	testkit.Want(t, status.Code(got.Err) == codes.DeadlineExceeded, "a call with a deadline in the queue: %v", got.Err)
	c.KillPID(pid)
	harness.WantStatus(t, (<-held).Err, codes.Unavailable, "cabrank: worker lost")
}

func callIoCode(ctx context.Context, conn *grpc.ClientConn) codes.Code {
	return status.Code(harness.CallIo(ctx, conn, "1", 0).Err)
}

func callMethodCode(ctx context.Context, conn *grpc.ClientConn, method string) codes.Code {
	return status.Code(conn.Invoke(ctx, method, &workpb.FailReply{}, &workpb.FailReply{}))
}

func checkHealthCode(ctx context.Context, conn *grpc.ClientConn) codes.Code {
	_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: plantedToken})
	return status.Code(err)
}

// sendMalformed sends what no gRPC library would: header blocks with the token
// in a field that is wrong, and bytes that are no HTTP/2 at all.
func sendMalformed(t *testing.T, addr string) {
	t.Helper()
	caller := testkit.DialCaller(t, addr)
	caller.Greet()
	caller.AnyOrder()
	for i, field := range [][2]string{
		{"grpc-timeout", plantedToken},
		{"connection", plantedToken},
		{"te", plantedToken},
		{"authorization", plantedToken + "\n"},
		{"Upper-" + plantedToken, "1"},
		{"x-large", strings.Repeat(plantedToken, 5000)}, // more than the 64 KiB of a header list
	} {
		caller.WriteHeaders(uint32(2*i+1), testkit.End, ":method", "POST", ":scheme", "http", ":path", "/no.Such/Method",
			":authority", addr, "content-type", "application/grpc", "te", "trailers", field[0], field[1])
	}
	caller.WritePing([8]byte{1})
	caller.WantPingAck([8]byte{1}) // all of it has been read
	caller.Close()

	stranger, err := net.Dial("tcp", addr)
	testkit.Must(t, err)
	defer stranger.Close()
	_, err = stranger.Write([]byte("GET /" + plantedToken + " HTTP/1.1\r\nauthorization: " + plantedToken + "\r\n\r\n"))
	testkit.Must(t, err)
	if _, err := io.ReadAll(stranger); err != nil {
		t.Logf("the end of a caller that speaks HTTP/1.1: %v", err)
	}
}

// wantJSONLines wants an object on every line.
func wantJSONLines(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		var object map[string]any
		err := json.Unmarshal([]byte(line), &object)
		testkit.Want(t, err == nil, "a line that is no JSON object: %v\n%s", err, line)
	}
}
