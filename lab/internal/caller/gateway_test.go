package caller

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

func startGateway(t *testing.T, handle http.HandlerFunc, path string) *Gateway {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	c, err := NewGateway(GatewayOptions{Address: server.Listener.Addr().String(), Path: path, Ready: "/healthz", Seed: 7})
	testkit.Must(t, err)
	t.Cleanup(c.Close)
	return c
}

// A request carries its number and the seed; its answer names several workers.
func TestGatewayCall(t *testing.T) {
	c := startGateway(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Calls-By-Server", "a=3, b=2,c=x, =0")
		fmt.Fprint(w, r.URL.String())
	}, "/fibonacci/random?iterations=5&seed={{.Seed}}-{{.RequestNumber}}")
	for number := range uint64(3) {
		answer := c.Call(t.Context(), traffic.Call{Number: number})
		want := int64(len("/fibonacci/random?iterations=5&seed=7-0"))
		if answer.Code != 0 || answer.Received.Bytes != want || answer.Workers["a"] != 3 || answer.Workers["b"] != 2 || len(answer.Workers) != 2 {
			t.Errorf("call %d: %+v", number, answer)
		}
	}
	testkit.Want(t, c.Opened() == 3, "%d connections for 3 requests", c.Opened())
}

// Each status of HTTP has one of gRPC, and the first line is kept.
func TestGatewayFailures(t *testing.T) {
	for status, want := range map[int]codes.Code{
		400: codes.InvalidArgument, 404: codes.Unimplemented, 429: codes.ResourceExhausted, 500: codes.Internal,
		502: codes.Internal, 503: codes.Unavailable, 504: codes.DeadlineExceeded, 302: codes.Unknown,
	} {
		c := startGateway(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			fmt.Fprintf(w, "20 of 100 calls failed\n%s", strings.Repeat("x", 1<<20))
		}, "/")
		answer := c.Call(t.Context(), traffic.Call{})
		testkit.Want(t, codes.Code(answer.Code) == want && answer.Message == fmt.Sprintf("%d 20 of 100 calls failed", status),
			"%d: %v %.80q, want %v", status, codes.Code(answer.Code), answer.Message, want)
	}
}

// A request ends at its deadline, and when the load gives it up.
func TestGatewayCallEnds(t *testing.T) {
	release := make(chan struct{})
	c := startGateway(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}, "/")
	defer close(release)
	answer := c.Call(t.Context(), traffic.Call{Deadline: time.Now().Add(50 * time.Millisecond)})
	testkit.Want(t, codes.Code(answer.Code) == codes.DeadlineExceeded, "at its deadline: %+v", answer)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if answer := c.Call(ctx, traffic.Call{}); codes.Code(answer.Code) != codes.Canceled {
		t.Errorf("given up: %+v", answer)
	}
}

// Ready waits for a gateway that does not work yet, and says what it answers.
func TestGatewayReady(t *testing.T) {
	var asked atomic.Int64
	c := startGateway(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" || asked.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, "not yet")
		}
	}, "/")
	err := c.Ready(t.Context())
	testkit.Want(t, err == nil && asked.Load() == 3, "%v after %d questions", err, asked.Load())
	asked.Store(-1 << 40)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	testkit.Refused(t, c.Ready(ctx), "does not answer /healthz: 503 not yet")
}

// Nobody is there: every call is UNAVAILABLE with a text that does not differ.
func TestGatewayNobodyThere(t *testing.T) {
	c, err := NewGateway(GatewayOptions{Address: testkit.FreeAddress(t), Path: "/?n={{.RequestNumber}}"})
	testkit.Must(t, err)
	first, second := c.Call(t.Context(), traffic.Call{}), c.Call(t.Context(), traffic.Call{Number: 1})
	if codes.Code(first.Code) != codes.Unavailable || first.Message != second.Message || !strings.Contains(first.Message, "refused") {
		t.Errorf("%+v, %+v", first, second)
	}
}

// What cannot be is told before anything is asked for.
func TestGatewayWrongOptions(t *testing.T) {
	for _, o := range []GatewayOptions{
		{Address: "localhost", Path: "/"},
		{Address: "localhost:1", Path: "fibonacci"},
		{Address: "localhost:1", Path: "http://elsewhere/"},
		{Address: "localhost:1", Path: "/a b"},
		{Address: "localhost:1", Path: "/?n={{.UUID}}"},
	} {
		_, err := NewGateway(o)
		testkit.Refused(t, err, "")
	}
}
