//go:build real || soak

package fibonacci_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

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
				if code != http.StatusOK || body != c.want+"\n" || header.Get("Content-Type") != "application/json" {
					t.Errorf("%s: %d %q of type %s, want 200 %q", c.path, code, body, header.Get("Content-Type"), c.want)
				}
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
	if err := json.Unmarshal([]byte(first), &items); err != nil || len(items) != 50 {
		t.Fatalf("%d items, %v", len(items), err)
	}
	least, most := 40, 3
	for _, item := range items {
		least, most = min(least, item.N), max(most, item.N)
	}
	if least < 3 || most > 40 || least == most {
		t.Errorf("n from %d to %d, want it drawn from 3 to 40", least, most)
	}
	if got := header.Get("X-Calls-By-Server"); got != "srv-1=50" {
		t.Errorf("calls by server: %q", got)
	}
	if _, again, _ := get(t, f.url+path); again != first {
		t.Error("the same seed asks for other numbers")
	}
	if _, other, _ := get(t, f.url+strings.ReplaceAll(path, "seed=7", "seed=8")); other == first {
		t.Error("another seed asks for the same numbers")
	}
	_, counts, _ := get(t, f.url+"/increment?iterations=20&pod_name=twenty")
	for _, want := range []string{`"response":1,`, `"response":20,`} {
		if strings.Count(counts, want) != 1 {
			t.Errorf("20 increments do not have %s once: %s", want, counts)
		}
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
				if status != c.status {
					t.Errorf("%.80s: %d, want %d", c.path, status, c.status)
				}
				wantOneLine(t, body, c.says)
			}
			status, body, header := try(t, http.MethodPost, front.url+"/fibonacci")
			if status != http.StatusMethodNotAllowed || header.Get("Allow") != "GET, HEAD" {
				t.Errorf("POST: %d, Allow: %q", status, header.Get("Allow"))
			}
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
			if err := conn.Invoke(t.Context(), "/fibonacci.FibonacciService/Fibonacci", wrapperspb.UInt32(30), value); err != nil || value.GetValue() != "832040" {
				t.Errorf("n=30: %q, %v", value.GetValue(), err)
			}
			err = conn.Invoke(t.Context(), "/fibonacci.FibonacciService/Increment", wrapperspb.String(strings.Repeat("x", 101)), &wrapperspb.UInt32Value{})
			if status.Code(err) != codes.InvalidArgument {
				t.Errorf("a long name: %v", err)
			}
			page := s.page(t)
			for _, want := range []string{
				`grpc_requests_total{method="Fibonacci",mode="Mesh",server_name="srv-1"} 2.0`,
				`grpc_responses_total{code="INVALID_ARGUMENT",method="Fibonacci",mode="Mesh",server_name="srv-1"} 1.0`,
				`grpc_responses_total{code="OK",method="Fibonacci",mode="Mesh",server_name="srv-1"} 1.0`,
				`grpc_responses_total{code="INVALID_ARGUMENT",method="Increment",mode="Mesh",server_name="srv-1"} 1.0`,
				`grpc_request_duration_seconds_count{method="Fibonacci",mode="Mesh",server_name="srv-1"} 2.0`,
				`grpc_requests_in_flight{mode="Mesh",server_name="srv-1"} 0.0`,
			} {
				if !strings.Contains(page, want+"\n") {
					t.Errorf("no line %s", want)
				}
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
		if code != 0 || !strings.Contains(p.Output(), name+"\n") {
			t.Errorf("grpcurl list ended with %d without %s: %s%s", code, name, p.Output(), p.Log())
		}
	}
}
