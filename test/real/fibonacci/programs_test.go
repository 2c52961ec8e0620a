//go:build real || soak

package fibonacci_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// flavour is a server and a front of one kind.
type flavour struct{ name, server, front string }

func flavours() []flavour {
	return []flavour{
		{"threads", "server.py", "front.py"},
		{"asyncio", "server_async.py", "front_async.py"},
	}
}

// python returns the interpreter that has the example's packages.
func python(t *testing.T) string {
	t.Helper()
	return harness.Built(t, filepath.Join(harness.Root(t), ".deps", "fibonacci", "bin", "python3"), "scripts/install-deps.sh workers")
}

// startProgram starts a program of the example.
func startProgram(t *testing.T, name string, env ...string) *harness.Process {
	t.Helper()
	env = append(env, "PYTHONDONTWRITEBYTECODE=1")
	return harness.StartProcess(t, env, python(t), filepath.Join(harness.Root(t), "examples", "fibonacci", name))
}

// server is one that runs.
type server struct {
	*harness.Process

	port    int
	metrics int // its port
	addr    string
}

// startServer starts a server and waits until its health service says that it serves.
func startServer(t *testing.T, program string, env ...string) *server {
	t.Helper()
	return startServerAt(t, "127.0.0.1", testkit.FreePorts(t, 2), program, env...)
}

func startServerAt(t *testing.T, host string, port int, program string, env ...string) *server {
	t.Helper()
	s := &server{port: port, metrics: port + 1, addr: net.JoinHostPort(host, strconv.Itoa(port))}
	s.Process = startProgram(t, program, append([]string{
		"POD_NAME=srv-1", "HOST=" + host, fmt.Sprintf("PORT=%d", port), fmt.Sprintf("METRICS_PORT=%d", port+1),
	}, env...)...)
	ctx, cancel := context.WithTimeout(t.Context(), harness.LangBound)
	defer cancel()
	request := &healthpb.HealthCheckRequest{Service: "fibonacci.FibonacciService"}
	reply, err := healthpb.NewHealthClient(harness.Dial(t, s.addr)).Check(ctx, request, grpc.WaitForReady(true))
	testkit.Need(t, err == nil && reply.GetStatus() == healthpb.HealthCheckResponse_SERVING,
		"health of %s: %v, %v; want SERVING", program, reply.GetStatus(), err)
	return s
}

// front is one that runs.
type front struct {
	*harness.Process

	url string
}

// startFront starts a front of a server and waits until it answers.
func startFront(t *testing.T, program, target string, env ...string) *front {
	t.Helper()
	port := testkit.FreePorts(t, 1)
	f := &front{url: fmt.Sprintf("http://127.0.0.1:%d", port)}
	f.Process = startProgram(t, program, append([]string{
		"POD_NAME=front-1", fmt.Sprintf("PORT=%d", port), "TARGET=" + target,
	}, env...)...)
	f.Wait(harness.LangBound, "an answer of the front", func() bool {
		status, _, _ := try(t, http.MethodGet, f.url+"/healthz")
		return status == http.StatusOK
	})
	return f
}

// get is try that fails the test without an answer.
func get(t *testing.T, url string) (status int, body string, header http.Header) {
	t.Helper()
	status, body, header = try(t, http.MethodGet, url)
	testkit.Need(t, status != 0, "%s: %s", url, body)
	return status, body, header
}

// try makes a request over a connection of its own; the status is 0 without an answer,
// and the body then says why.
func try(t *testing.T, verb, url string) (status int, body string, header http.Header) {
	t.Helper()
	client := http.Client{Timeout: harness.CallBound, Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), verb, url, http.NoBody)
	testkit.Must(t, err)
	answer, err := client.Do(request)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error(), nil
	}
	return answer.StatusCode, string(text), answer.Header
}

// page returns the metrics of a server.
func (s *server) page(t *testing.T) string {
	t.Helper()
	host, _, _ := net.SplitHostPort(s.addr)
	_, text, _ := get(t, "http://"+net.JoinHostPort(host, strconv.Itoa(s.metrics))+"/metrics")
	return text
}

// wantOneLine fails unless a text is one line that contains all of the words.
func wantOneLine(t *testing.T, text string, words ...string) {
	t.Helper()
	testkit.Want(t, strings.Count(text, "\n") == 1 && strings.HasSuffix(text, "\n"), "want one line, got %q", text)
	for _, word := range words {
		testkit.Says(t, text, word)
	}
}
