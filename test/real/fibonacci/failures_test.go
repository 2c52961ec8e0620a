//go:build real || soak

package fibonacci_test

import (
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

// Without a server a request fails, is not tried for ever, and says so.
func TestNoServer(t *testing.T) {
	for _, f := range flavours() {
		t.Run(f.name, func(t *testing.T) {
			front := startFront(t, f.front, testkit.FreeAddress(t), "WORKERS=1")
			code, body, header := get(t, front.url+"/fibonacci/random?iterations=100")
			if code != http.StatusServiceUnavailable || header.Get("X-Calls-Failed") != "UNAVAILABLE=20" {
				t.Errorf("%d, failed: %q", code, header.Get("X-Calls-Failed"))
			}
			wantOneLine(t, body, "20 of 100 calls failed (UNAVAILABLE=20)", "80 of 100 calls were not made")
			_, page, _ := get(t, front.url+"/metrics")
			if want := `grpc_client_calls_total{code="UNAVAILABLE",method="Fibonacci",mode="Normal",server_name=""} 20.0`; !strings.Contains(page, want) {
				t.Errorf("no line %s", want)
			}
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
			if took := time.Since(began); code != http.StatusGatewayTimeout || took > 15*time.Second {
				t.Errorf("%d after %v: %s", code, took, body)
			}
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
			if got := <-answered; !strings.HasPrefix(got, "200 ") {
				t.Errorf("the request under way: %s", got)
			}
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
			if failed := tally.Failed(); len(failed) > 0 {
				t.Errorf("failed: %v", failed)
			}
			s.WantExit(harness.Patience, 0)
		})
	}
}

// coreLine matches a line of gRPC's own log.
var coreLine = regexp.MustCompile(`(?m)^E\d{4} .*\n`)

// A setting that is wrong, or an address that is taken, is one line and exit code 2.
func TestBadSettings(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
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
