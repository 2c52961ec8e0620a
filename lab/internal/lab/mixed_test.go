package lab

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/method"
	"github.com/cabrank/cabrank/lab/internal/report"
	"github.com/cabrank/cabrank/lab/internal/stats"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// fixed is a client whose calls all end with one code.
type fixed struct {
	caller.Caller

	code   uint32
	closed *int
}

func (f fixed) Call(context.Context, traffic.Call) traffic.Answer {
	return traffic.Answer{Code: f.code}
}
func (f fixed) Opened() int64 { return 2 }
func (f fixed) Close()        { *f.closed++ }

// Methods have their shares of the calls, the same ones at the second time.
func TestMixed(t *testing.T) {
	closed := 0
	m := &mixed{seed: 3}
	m.add("a.B/C", 0.7, fixed{closed: &closed})
	m.add("a.B/D", 0.2, fixed{code: 5, closed: &closed})
	m.add("a.B/E", 0.1, fixed{code: 8, closed: &closed})
	const calls = 50_000
	var codes [2][]uint32
	for again := range codes {
		for number := range uint64(calls) {
			codes[again] = append(codes[again], m.Call(t.Context(), traffic.Call{Number: number}).Code)
		}
	}
	for i := range codes[0] {
		testkit.Need(t, codes[0][i] == codes[1][i], "call %d is for another method at the second time", i)
	}
	want := map[string]float64{"a.B/C, answered": 0.7, "a.B/D, failed": 0.2, "a.B/E, failed": 0.1}
	for _, c := range m.Counts() {
		share := float64(c.N) / (2 * calls)
		testkit.Want(t, math.Abs(share-want[c.Name]) <= 0.01, "%s: %.3f of the calls, want %.1f", c.Name, share, want[c.Name])
	}
	testkit.Want(t, m.Opened() == 6, "%d connections", m.Opened())
	if m.Close(); closed != 3 {
		t.Errorf("%d closed", closed)
	}
}

func TestParseAlso(t *testing.T) {
	a, err := ParseAlso(`  2.5%  demo.Jobs/List {"page": 1} `)
	testkit.Want(t, err == nil && a.Share == 0.025 && a.Method == "demo.Jobs/List" && string(a.Data.Text) == `{"page": 1}`,
		"%+v, %v", a, err)
	for _, text := range []string{"", "20%", "20% a.B/C", "20 a.B/C {}", "100% a.B/C {}", "0% a.B/C {}", "x% a.B/C {}"} {
		_, err := ParseAlso(text)
		testkit.Refused(t, err, "want a share, a method")
	}
}

func TestMain(m *testing.M) { testkit.VerifyMain(m) }

// A load by each protocol and codec is answered, and the report says how it called.
func TestLoadByProtocol(t *testing.T) {
	handler := connect.NewUnaryHandler("/a.B/C", func(_ context.Context, r *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error) {
		return connect.NewResponse(r.Msg), nil
	})
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = &http.Protocols{}
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "a.proto")
	text := `syntax = "proto3"; package a; import "google/protobuf/wrappers.proto";
		service B { rpc C(google.protobuf.StringValue) returns (google.protobuf.StringValue); }`
	testkit.Must(t, os.WriteFile(file, []byte(text), 0o600))
	plan, err := traffic.Options{Callers: 2, Duration: 200 * time.Millisecond}.Plan()
	testkit.Must(t, err)
	for _, protocol := range caller.Protocols() {
		for _, codec := range caller.Codecs() {
			l := Load{Plan: plan, Calls: caller.Calls{Method: "a.B/C", Files: method.Files{Names: []string{file}}, Data: method.Data{Name: "--data", Text: []byte(`"{{.RequestNumber}}"`)}}}
			l.Target = server.Listener.Addr().String()
			l.Way, err = caller.ParseWay(protocol, codec, "")
			testkit.Must(t, err)
			p, err := l.Prepare(t.Context())
			testkit.Must(t, err)
			done, err := p.Run(t.Context(), l.Plan, nil)
			testkit.Must(t, err)
			if n := done.Record.Calls.Answered.Count(); n == 0 || n != done.Record.Due {
				t.Errorf("%s, %s: %d of %d answered, %v", protocol, codec, n, done.Record.Due, done.Record.Failures)
			}
			by := l.Way.String()
			if l.Way.Plain() {
				by = "grpc-go "
			}
			testkit.Want(t, strings.Contains(done.Client[0], by), "%s, %s: %s", protocol, codec, done.Client[0])
			p.Close()
		}
	}
}

// The whole interval has to lie on the right side; a figure that is not tested does not hold.
func TestChange(t *testing.T) {
	tested := func(figure string, low, high float64) report.Tested {
		return report.Tested{Comparison: stats.Comparison{Figure: figure, Method: stats.Student, Ratio: stats.Interval{Low: low, High: high}}}
	}
	f := report.Findings{Tested: []report.Tested{tested("p99", 1.1, 1.2), tested("errors", 1, 1), {Comparison: stats.Comparison{Figure: "rate"}}}}
	for text, want := range map[string]bool{
		"p99<21%": true, "p99 < 20.0%": false, "p99>9%": true, "p99>11%": false, "p99<-1%": false,
		"errors<1%": true, "rate>-5%": false, "p50<1%": false,
	} {
		c, err := ParseChange(text)
		testkit.Must(t, err)
		lines, held := c.Judge(f)
		testkit.Want(t, held == want && len(lines) == 1, "%s: %v, %q", text, held, lines)
	}
	for _, text := range []string{"", "p99", "p99<5", "<5%", "p99<x%", "p77<5%", "p99<-101%"} {
		_, err := ParseChange(text)
		testkit.Want(t, err != nil, "%q was read", text)
	}
}
