//go:build real || soak

// Package load_test makes loads on real services, and asks what they tell.
package load_test

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/lab/internal/lab"
	"github.com/cabrank/cabrank/test/oldjuggler"
	"github.com/cabrank/cabrank/test/real/harness"
)

// startLoad begins a load on the method of a demo.
func startLoad(t *testing.T, address, method string, args ...string) *harness.Process {
	t.Helper()
	return harness.StartProcess(t, nil, harness.LabBinary(t), append([]string{"load", address, method}, args...)...)
}

func startDemo(t *testing.T) (address string) {
	t.Helper()
	demo := harness.StartProcess(t, nil, harness.CabrankBinary(t), "demo", "--listen", "127.0.0.1:0", "--metrics", "off", "--probes", "off")
	c := harness.Cabrank{Process: demo}
	return c.Listening("listening")
}

const sayHello = "cabrank.demo.v1.Greeter/SayHello"

// An open loop on a service that describes itself: every call that was due is in the
// figures, and the files can be read again.
func TestLabLoad(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "results")
	load := startLoad(t, startDemo(t), sayHello, "--data", `{"name": "{{.RequestNumber}}"}`,
		"--rate", "100", "--arrivals", "poisson", "--warmup", "200ms", "--duration", "2s", "--out", folder)
	load.WantExit(harness.Patience, 0, "calls answered")
	r := resultIn(t, folder)
	if n := r.Record.Calls.Answered.Count(); r.Schema != lab.ResultSchema || r.Record.Due < 100 || n != r.Record.Due {
		t.Errorf("%s: %d of %d calls answered", r.Schema, n, r.Record.Due)
	}
	page, err := os.ReadFile(filepath.Join(folder, lab.ReportFile))
	testkit.Want(t, err == nil && strings.Contains(string(page), sayHello), "the report: %v", err)
}

// resultIn reads what a load has written into a folder.
func resultIn(t *testing.T, folder string) (r lab.Result) {
	t.Helper()
	text := testkit.ReadFile(t, filepath.Join(folder, lab.ResultFile))
	testkit.Must(t, json.Unmarshal(text, &r))
	return r
}

// Without reflection the files of the service describe it; streams and virtual users.
func TestLabLoadByFile(t *testing.T) {
	proto := filepath.Join(harness.Root(t), "proto", "cabrank", "demo", "v1", "greeter.proto")
	load := startLoad(t, startDemo(t), "cabrank.demo.v1.Greeter/Chat", "--proto", proto, "--data", `[{"name": "a"}, {"name": "b"}]`,
		"--stages", "1s:3,500ms:0", "--connections", "2")
	load.WantExit(harness.Patience, 0, "A closed loop")
}

// Ctrl-C keeps what was measured.
func TestLabLoadCutShort(t *testing.T) {
	load := startLoad(t, startDemo(t), sayHello, "--data", "{}", "--rate", "50", "--duration", "10m")
	load.WaitLog(harness.Patience, "Ctrl-C ends it")
	load.Signal(syscall.SIGINT)
	load.WantExit(harness.Patience, 0, "Cut short after")
}

// A threshold that is missed is exit status 1, and so is a search that finds no rate:
// the first one fails, or the generator is late on a busy machine.
func TestLabLoadThresholds(t *testing.T) {
	address := startDemo(t)
	for limit, want := range map[string]int{"p99<10s": 0, "p50<1ms": 1} {
		load := startLoad(t, address, sayHello, "--data", "{}", "--callers", "2", "--duration", "1s", "--fail", limit)
		load.WantExit(harness.Patience, want, limit)
	}
	load := startLoad(t, address, sayHello, "--data", "{}", "--rate", "200", "--duration", "500ms", "--timeout", "5s",
		"--fail", "max<1ms", "--find")
	found := regexp.MustCompile(`\n(fails even at the first rate, 200/s|the generator was the limit at 200/s): `)
	if load.WantExit(harness.Patience, 1); !found.MatchString(load.Output()) {
		t.Errorf("a search:\n%s", load.Output())
	}
}

const checkHealth = "grpc.health.v1.Health/Check"

// serveHealth serves health and reflection by gRPC alone, as no cabrank does, over TLS if
// there is one.
func serveHealth(t *testing.T, over *tls.Config) (address string) {
	t.Helper()
	server := grpc.NewServer()
	if over != nil {
		server = grpc.NewServer(grpc.Creds(credentials.NewTLS(over)))
	}
	healthpb.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)
	l, ended := testkit.Listen(t), make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-ended })
	return l.Addr().String()
}

// A line for each fault, and nothing was called.
func TestLabLoadRefuses(t *testing.T) {
	address := startDemo(t)
	plan := []string{"--rate", "10", "--duration", "1s"}
	for _, test := range []struct {
		name, address, method string
		args                  []string
		want                  string
	}{
		{"no such method", address, "cabrank.demo.v1.Greeter/SayHelo", append(plan, "--data", "{}"), "its methods: SayHello,"},
		{"no such field", address, sayHello, append(plan, "--data", `{"nam": 1}`), `--data:1:2: unknown field "nam"`},
		{"no such threshold", address, sayHello, append(plan, "--data", "{}", "--fail", "p99<"), "not a duration"},
		{"a search of nothing", address, sayHello, append(plan, "--data", "{}", "--find"), "at which thresholds?"},
		{"no place for the results", address, sayHello, append(plan, "--data", "{}", "--out", "/proc/results"), "--out: "},
		{"another protocol", serveHealth(t, nil), checkHealth, append(plan, "--data", "{}", "--protocol", "connect"), "does not speak Connect"},
		{"no address", "http://localhost:50051", sayHello, append(plan, "--data", "{}"), `address "http://localhost:50051": want host:port without http://, such as localhost:50051`},
		{"no port", "localhost", sayHello, append(plan, "--data", "{}"), `address "localhost" has no port: want host:port, such as localhost:8080, or unix:///path`},
		{"nobody there", "127.0.0.1:1", sayHello, append(plan, "--data", "{}"), "connection refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			startLoad(t, test.address, test.method, test.args...).WantRefusal(2, test.want)
		})
	}
}

func TestMain(m *testing.M) { harness.Main(m) }

// startServe starts a server of sockets.
func startServe(t testing.TB, flags ...string) (c harness.Cabrank, url string) {
	t.Helper()
	args := append([]string{"socket", "serve", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"}, flags...)
	c = harness.Cabrank{Process: harness.StartCLI(t, args...)}
	url = "ws://" + c.Listening("listening") + "/ws"
	c.MetricsAddr = c.Listening("metrics listening")
	return c, url
}

// startOld starts the old server with a callee that has the functions of tests.
func startOld(t *testing.T) (url string) {
	t.Helper()
	redis := redisd.Start(t)
	callee, err := oldjuggler.NewCallee(redis.Dial, 4, oldjuggler.TestFunctions())
	testkit.Must(t, err)
	ended := make(chan error)
	go func() { ended <- callee.Run() }()
	t.Cleanup(func() {
		callee.Close()
		<-ended
	})
	handler := oldjuggler.NewServer(oldjuggler.Options{CloseURI: "close", Dial: redis.Dial})
	server := httptest.NewServer(http.HandlerFunc(handler.ServeHTTP))
	t.Cleanup(func() {
		handler.Close()
		server.Close()
	})
	return "ws" + strings.TrimPrefix(server.URL, "http") + "/ws"
}
