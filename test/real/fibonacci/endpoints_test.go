//go:build real || soak

package fibonacci_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Every path and parameter of the README, answered byte for byte.
func TestEndpoints(t *testing.T) {
	for _, f := range flavours() {
		t.Run(f.name, func(t *testing.T) {
			s := startServer(t, f.server, "WORKERS=2")
			front := startFront(t, f.front, s.addr, "WORKERS=2")
			for _, c := range []struct{ path, want string }{
				{"/fibonacci", `{"server":"srv-1","value":"1"}`},
				{"/fibonacci?n=0", `{"server":"srv-1","value":"0"}`},
				{"/fibonacci?n=90", `{"server":"srv-1","value":"2880067194370816120"}`},
				{"/fibonacci/random?fibo_start=10&fibo_end=10", `[{"n":10,"server":"srv-1","value":"55"}]`},
				{"/fibonacci/random?iterations=0", `[]`},
				{"/fibonacci/random?iterations=5&output=false", `{"sergeant job done?":"Yes lieutenant!"}`},
				{"/increment", `[{"response":1,"server":"srv-1"}]`},
				{"/increment?pod_name=front-1", `[{"response":2,"server":"srv-1"}]`},
				{"/increment?iteration=1&name=other", `[{"response":1,"server":"srv-1"}]`},
				{"/increment?iterations=0", `[]`},
			} {
				code, body, header := get(t, front.url+c.path)
				testkit.Want(t, code == http.StatusOK && body == c.want+"\n" && header.Get("Content-Type") == "application/json",
					"%s: %d %q of type %s, want 200 %q", c.path, code, body, header.Get("Content-Type"), c.want)
			}
			if _, body, _ := get(t, front.url+"/fibonacci?n=20000"); len(body) != 4180+len(`{"server":"srv-1","value":""}`)+1 {
				t.Errorf("n=20000 gives %d bytes", len(body))
			}
			rounds(t, front)
		})
	}
}

// rounds makes several calls in a request: each is answered once, and the same seed asks
// for the same numbers.
func rounds(t *testing.T, f *front) {
	t.Helper()
	const path = "/fibonacci/random?iterations=50&fibo_start=3&fibo_end=40&seed=7"
	_, first, header := get(t, f.url+path)
	var items []struct {
		N      int    `json:"n"`
		Server string `json:"server"`
	}
	err := json.Unmarshal([]byte(first), &items)
	testkit.Need(t, err == nil && len(items) == 50, "%d items, %v", len(items), err)
	least, most := 40, 3
	for _, item := range items {
		least, most = min(least, item.N), max(most, item.N)
	}
	testkit.Want(t, least >= 3 && most <= 40 && least != most, "n from %d to %d, want it drawn from 3 to 40", least, most)
	testkit.Equal(t, header.Get("X-Calls-By-Server"), "srv-1=50", "calls by server")
	_, again, _ := get(t, f.url+path)
	testkit.Want(t, again == first, "the same seed asks for other numbers")
	_, other, _ := get(t, f.url+strings.ReplaceAll(path, "seed=7", "seed=8"))
	testkit.Want(t, other != first, "another seed asks for the same numbers")
	_, counts, _ := get(t, f.url+"/increment?iterations=20&pod_name=twenty")
	for _, want := range []string{`"response":1,`, `"response":20,`} {
		testkit.Want(t, strings.Count(counts, want) == 1, "20 increments do not have %s once: %s", want, counts)
	}
}

// What is wrong is one line and a status of its own; nothing is called.
func TestBadInput(t *testing.T) {
	for _, f := range flavours() {
		t.Run(f.name, func(t *testing.T) {
			front := startFront(t, f.front, "127.0.0.1:1")
			for _, c := range []struct {
				path, says string
				status     int
			}{
				{"/fibonacci/random?iterations=abc", "iterations must be a whole number from 0 to 100000, not 'abc'", 400},
				{"/fibonacci/random?iterations=100001", "iterations must be", 400},
				{"/fibonacci/random?iterations=10001", "unless output=false", 400},
				{"/fibonacci/random?fibo_start=9&fibo_end=2", "9 is above 2", 400},
				{"/fibonacci/random?fibo_end=", "fibo_end must be", 400},
				{"/fibonacci?n=-1", "n must be a whole number from 0 to 20000, not '-1'", 400},
				{"/fibonacci?n=20001", "n must be", 400},
				{"/fibonacci?n=1.5", "n must be", 400},
				{"/fibonacci?m=3", "unknown parameter 'm'; there are n", 400},
				{"/increment?iteration=x", "iterations must be", 400},
				{"/increment?pod_name=" + strings.Repeat("x", 101), "1 to 100 characters", 400},
				{"/", "there are /fibonacci/random, /fibonacci, /increment", 404},
			} {
				status, body, _ := get(t, front.url+c.path)
				testkit.Want(t, status == c.status, "%.80s: %d, want %d", c.path, status, c.status)
				wantOneLine(t, body, c.says)
			}
			status, body, header := try(t, http.MethodPost, front.url+"/fibonacci")
			testkit.Want(t, status == http.StatusMethodNotAllowed && header.Get("Allow") == "GET, HEAD",
				"POST: %d, Allow: %q", status, header.Get("Allow"))
			wantOneLine(t, body, "POST is not possible here")
			if status, body, _ := try(t, http.MethodHead, front.url+"/fibonacci?n=x"); status != 400 || body != "" {
				t.Errorf("HEAD: %d %q", status, body)
			}
		})
	}
}

// The server refuses by itself what is too much, and counts it by its code.
func TestServerRefuses(t *testing.T) {
	for _, f := range flavours() {
		t.Run(f.name, func(t *testing.T) {
			s := startServer(t, f.server, "MODE=Mesh")
			conn := harness.Dial(t, s.addr)
			value := &wrapperspb.StringValue{} // the first field of each answer is a text or a number
			err := conn.Invoke(t.Context(), "/fibonacci.FibonacciService/Fibonacci", wrapperspb.UInt32(20001), value)
			if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != "n must be from 0 to 20000, not 20001" {
				t.Errorf("n=20001: %v", err)
			}
			err = conn.Invoke(t.Context(), "/fibonacci.FibonacciService/Fibonacci", wrapperspb.UInt32(30), value)
			testkit.Want(t, err == nil && value.GetValue() == "832040", "n=30: %q, %v", value.GetValue(), err)
			err = conn.Invoke(t.Context(), "/fibonacci.FibonacciService/Increment", wrapperspb.String(strings.Repeat("x", 101)), &wrapperspb.UInt32Value{})
			testkit.Want(t, status.Code(err) == codes.InvalidArgument, "a long name: %v", err)
			page := s.page(t)
			for _, want := range []string{
				`grpc_requests_total{method="Fibonacci",mode="Mesh",server_name="srv-1"} 2.0`,
				`grpc_responses_total{code="INVALID_ARGUMENT",method="Fibonacci",mode="Mesh",server_name="srv-1"} 1.0`,
				`grpc_responses_total{code="OK",method="Fibonacci",mode="Mesh",server_name="srv-1"} 1.0`,
				`grpc_responses_total{code="INVALID_ARGUMENT",method="Increment",mode="Mesh",server_name="srv-1"} 1.0`,
				`grpc_request_duration_seconds_count{method="Fibonacci",mode="Mesh",server_name="srv-1"} 2.0`,
				`grpc_requests_in_flight{mode="Mesh",server_name="srv-1"} 0.0`,
			} {
				testkit.Want(t, strings.Contains(page, want+"\n"), "no line %s", want)
			}
			wantReflection(t, s)
		})
	}
}

// wantReflection lists the services as people do.
func wantReflection(t *testing.T, s *server) {
	t.Helper()
	p := harness.StartProcess(t, nil, harness.Tool(t, "grpcurl"), "-plaintext", s.addr, "list")
	code := p.ExitCode(harness.Patience)
	for _, name := range []string{"fibonacci.FibonacciService", "grpc.health.v1.Health"} {
		testkit.Want(t, code == 0 && strings.Contains(p.Output(), name+"\n"),
			"grpcurl list ended with %d without %s: %s%s", code, name, p.Output(), p.Log())
	}
}

// Without a server a request fails, is not tried for ever, and says so.
func TestNoServer(t *testing.T) {
	for _, f := range flavours() {
		t.Run(f.name, func(t *testing.T) {
			front := startFront(t, f.front, testkit.FreeAddress(t), "WORKERS=1")
			code, body, header := get(t, front.url+"/fibonacci/random?iterations=100")
			testkit.Want(t, code == http.StatusServiceUnavailable && header.Get("X-Calls-Failed") == "UNAVAILABLE=20",
				"%d, failed: %q", code, header.Get("X-Calls-Failed"))
			wantOneLine(t, body, "20 of 100 calls failed (UNAVAILABLE=20)", "80 of 100 calls were not made")
			_, page, _ := get(t, front.url+"/metrics")
			want := `grpc_client_calls_total{code="UNAVAILABLE",method="Fibonacci",mode="Normal",server_name=""} 20.0`
			testkit.Want(t, strings.Contains(page, want), "no line %s", want)
		})
	}
}

// Calls to a server that stands still end by their deadline. They wait side by side: 16
// of them would take 16 s one after the other.
func TestFrozenServer(t *testing.T) {
	for _, f := range flavours() {
		t.Run(f.name, func(t *testing.T) {
			s := startServer(t, f.server)
			front := startFront(t, f.front, s.addr, "WORKERS=16", "CALL_TIMEOUT_SECONDS=1")
			if code, _, _ := get(t, front.url+"/fibonacci"); code != http.StatusOK {
				t.Fatalf("status %d", code)
			}
			s.Signal(syscall.SIGSTOP)
			began := time.Now()
			code, body, _ := get(t, front.url+"/fibonacci/random?iterations=16&output=false")
			s.Signal(syscall.SIGCONT)
			took := time.Since(began)
			testkit.Want(t, code == http.StatusGatewayTimeout && took <= 15*time.Second, "%d after %v: %s", code, took, body)
			wantOneLine(t, body, "16 of 16 calls failed (DEADLINE_EXCEEDED=16)")
		})
	}
}

// A front that is asked to stop ends what it has begun, and takes nothing new.
func TestFrontStops(t *testing.T) {
	for _, f := range flavours() {
		t.Run(f.name, func(t *testing.T) {
			s := startServer(t, f.server, "WORKERS=2")
			front := startFront(t, f.front, s.addr, "WORKERS=2")
			answered := make(chan string, 1)
			go func() { // ends with its request, which has a limit
				code, body, _ := try(t, http.MethodGet, front.url+"/fibonacci/random?iterations=300&output=false&fibo_start=9000&fibo_end=9000")
				answered <- fmt.Sprint(code, " ", body)
			}()
			s.Wait(harness.Patience, "a call", func() bool { return served.MatchString(s.page(t)) })
			front.Signal(syscall.SIGTERM)
			got := <-answered
			testkit.Want(t, strings.HasPrefix(got, "200 "), "the request under way: %s", got)
			front.WantExit(harness.Patience, 0)
			if code, _, _ := try(t, http.MethodGet, front.url+"/healthz"); code != 0 {
				t.Errorf("still there: %d", code)
			}
		})
	}
}

// A request that takes longer than GRACE_SECONDS is ended, so that the front ends.
func TestFrontStopsInTime(t *testing.T) {
	for _, f := range flavours() {
		t.Run(f.name, func(t *testing.T) {
			s := startServer(t, f.server)
			front := startFront(t, f.front, s.addr, "GRACE_SECONDS=1")
			answered := make(chan int, 1)
			go func() { // ends with the front
				code, _, _ := try(t, http.MethodGet, front.url+"/fibonacci/random?iterations=100000&output=false&fibo_start=9000&fibo_end=9000")
				answered <- code
			}()
			s.Wait(harness.Patience, "a call", func() bool { return served.MatchString(s.page(t)) })
			front.Signal(syscall.SIGTERM)
			front.WantExit(harness.Patience, 0)
			if code := <-answered; code == http.StatusOK {
				t.Error("100,000 calls were made within a second")
			}
		})
	}
}

// served matches a page on which calls have been answered.
var served = regexp.MustCompile(`(?m)^grpc_responses_total\{code="OK".*\} [1-9]`)

// begun matches a page on which 60 calls have begun.
var begun = regexp.MustCompile(`(?m)^grpc_requests_total\{.*Fibonacci.*\} 60\.0$`)

// A server that is asked to stop answers the calls that it has begun.
func TestServerStops(t *testing.T) {
	for _, f := range flavours() {
		t.Run(f.name, func(t *testing.T) {
			s := startServer(t, f.server, "WORKERS=60") // a thread for each call: none waits to begin
			conn := harness.Dial(t, s.addr)
			var (
				calls sync.WaitGroup
				tally harness.Tally
			)
			for range 60 {
				calls.Go(func() {
					err := conn.Invoke(t.Context(), "/fibonacci.FibonacciService/Fibonacci", wrapperspb.UInt32(20000), &wrapperspb.StringValue{})
					if status.Code(err) != codes.Unavailable { // it was not there yet
						tally.Count(err)
					}
				})
			}
			s.Wait(harness.Patience, "all calls", func() bool { return begun.MatchString(s.page(t)) })
			s.Signal(syscall.SIGTERM)
			calls.Wait()
			failed := tally.Failed()
			testkit.Want(t, len(failed) == 0, "failed: %v", failed)
			s.WantExit(harness.Patience, 0)
		})
	}
}

// coreLine matches a line of gRPC's own log.
var coreLine = regexp.MustCompile(`(?m)^E\d{4} .*\n`)

// A setting that is wrong, or an address that is taken, is one line and exit code 2.
func TestBadSettings(t *testing.T) {
	taken := testkit.Listen(t)
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	free := fmt.Sprintf("PORT=%d", testkit.FreePorts(t, 1))
	for _, f := range flavours() {
		for _, c := range []struct {
			program string
			env     []string
			says    string
		}{
			{f.server, []string{"WORKERS=many"}, "WORKERS must be a whole number from 1 to 1000, not 'many'"},
			{f.server, []string{"PORT=" + port, "METRICS_PORT=0"}, "cannot listen on 127.0.0.1:" + port},
			{f.server, []string{free, "METRICS_PORT=" + port}, "METRICS_PORT chooses another one"},
			{f.front, []string{"GRPC_SERVER_SVC_TYPE=random"}, "must be one of normal, headless, mesh, relay, not 'random'"},
			{f.front, []string{"SERVER_PORT=0"}, "SERVER_PORT must be"},
			{f.front, []string{"PORT=" + port}, "cannot listen on 127.0.0.1:" + port},
		} {
			p := startProgram(t, c.program, c.env...)
			p.WantExit(harness.LangBound, 2)
			wantOneLine(t, coreLine.ReplaceAllString(p.Log(), ""), c.says)
		}
	}
}
