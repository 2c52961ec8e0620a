//go:build real || soak

// Package traces_test has calls of a real program seen by a collector of OpenTelemetry, whose
// types are those of the real one.
package traces_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/collector"
	"github.com/cabrank/cabrank/test/real/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

const (
	// The caller's own trace and span, as W3C Trace Context has them.
	callersTrace = "0af7651916cd43dd8448eb211c80319c"
	callersSpan  = "b7ad6b7169203331"
	sampled      = "00-" + callersTrace + "-" + callersSpan + "-01"
	notSampled   = "00-" + callersTrace + "-" + callersSpan + "-00"
)

// server is a worker in this process that notes what it is told of traces.
type server struct {
	workpb.UnimplementedWorkServer

	mu      sync.Mutex
	told    []metadata.MD
	failing int // how many calls it fails yet
	holding int // how many calls it holds until they are cancelled
}

func (s *server) Io(ctx context.Context, req *workpb.IoRequest) (*workpb.IoReply, error) {
	told, _ := metadata.FromIncomingContext(ctx)
	s.mu.Lock()
	s.told = append(s.told, told)
	fail := s.failing > 0
	if fail {
		s.failing--
	}
	hold := s.holding > 0
	if hold {
		s.holding--
	}
	s.mu.Unlock()
	if hold {
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if fail {
		return nil, status.Error(codes.Unavailable, "not yet")
	}
	<-time.After(time.Duration(req.GetMillis()) * time.Millisecond) // it works
	return &workpb.IoReply{Millis: req.GetMillis()}, nil
}

// seen returns what the worker was told of the n-th call: traceparent and tracestate.
func (s *server) seen(t *testing.T, n int) (parent, state string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	testkit.Need(t, len(s.told) > n, "the worker had %d calls", len(s.told))
	one := func(name string) string {
		if all := s.told[n].Get(name); len(all) > 0 {
			return fmt.Sprint(len(all), " ", all[0])
		}
		return ""
	}
	return one("traceparent"), one("tracestate")
}

// scene is a running Cabrank between a caller and a worker of this process.
type scene struct {
	*harness.Cabrank

	worker *server
	client workpb.WorkClient
	spans  *collector.Collector
}

// newScene starts it with more of tracing's configuration, and of all.
func newScene(t *testing.T, tracing, more string) *scene {
	t.Helper()
	return newSceneOf(t, 1, tracing, more)
}

// newSceneOf is newScene with a worker that has so many addresses.
func newSceneOf(t *testing.T, addresses int, tracing, more string) *scene {
	t.Helper()
	s := &scene{worker: &server{}, spans: collector.Start(t)}
	server := grpc.NewServer()
	workpb.RegisterWorkServer(server, s.worker)
	t.Cleanup(server.Stop)
	var upstreams []string
	for range addresses {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		testkit.Must(t, err)
		go server.Serve(ln)
		upstreams = append(upstreams, ln.Addr().String())
	}
	if !strings.Contains(more, "slots:") {
		more += "slots: 1\n"
	}
	text := fmt.Sprintf("upstreams: [%s]\ntracing: {endpoint: '%s'%s}\n%s", strings.Join(upstreams, ", "), s.spans.URL, tracing, more)
	s.Cabrank = harness.StartCabrank(t, "--config", harness.WriteFile(t, "cabrank.yml", []byte(text)))
	s.WaitReady(harness.Patience)
	conn, err := grpc.NewClient(s.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	testkit.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	s.client = workpb.NewWorkClient(conn)
	return s
}

// call makes a call that takes so long, with fields.
func (s *scene) call(t *testing.T, millis uint32, fields ...string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), fields...), 30*time.Second)
	defer cancel()
	_, err := s.client.Io(ctx, &workpb.IoRequest{Millis: millis})
	return err
}

// byName returns the spans of a trace by what they are: the call, "queue", and the attempts.
func byName(all []collector.Span) map[string][]collector.Span {
	of := map[string][]collector.Span{}
	for _, s := range all {
		what := s.Name
		if kind, is := s.Attributes["cabrank.attempt"]; is {
			what = fmt.Sprint(kind)
		}
		if s.Kind == "Server" {
			what = "call"
		}
		of[what] = append(of[what], s)
	}
	return of
}

// A call that comes sampled has spans below its caller's, its worker is told of the attempt's,
// and the parts take as long as the call. The access log and the histogram name the trace.
func TestTraceOfACall(t *testing.T) {
	s := newScene(t, "", "access_log: stdout\n")
	ended := make(chan error, 1)
	go func() { ended <- s.call(t, 400) }() // it has the slot
	testkit.Eventually(t, harness.Patience, "a call at the worker", func() bool {
		s.worker.mu.Lock()
		defer s.worker.mu.Unlock()
		return len(s.worker.told) == 1
	})
	testkit.Must(t, s.call(t, 400, "traceparent", sampled, "tracestate", "shop=1"))
	testkit.Must(t, <-ended)
	of := byName(s.spans.Await(t, 3))
	call, queue, first := of["call"], of["queue"], of["first"]
	testkit.Need(t, len(call) == 1 && len(queue) == 1 && len(first) == 1, "%+v", of)
	whole := call[0]
	testkit.Want(t, whole.Trace == callersTrace && whole.Parent == callersSpan && queue[0].Parent == whole.ID && first[0].Parent == whole.ID,
		"the spans do not hang together: %+v", of)
	if whole.Name != "cabrank.example.v1.Work/Io" || whole.Attributes["rpc.status_code"] != "OK" || whole.Resource["service.name"] != "cabrank" || whole.State != "shop=1" {
		t.Errorf("the call: %+v", whole)
	}
	parent, state := s.worker.seen(t, 1)
	want := "1 00-" + callersTrace + "-" + first[0].ID + "-01"
	testkit.Want(t, parent == want && state == "1 shop=1", "the worker was told %s, %s, want %s", parent, state, want)
	took := whole.End.Sub(whole.Start)
	parts := queue[0].End.Sub(queue[0].Start) + first[0].End.Sub(first[0].Start)
	off := took - parts
	testkit.Want(t, off >= 0 && off <= max(took/100, 5*time.Millisecond), "the call took %v, its parts %v", took, parts)
	if parent, _ := s.worker.seen(t, 0); parent != "" {
		t.Errorf("a call without a trace: the worker was told %s", parent)
	}
	s.Wait(harness.Patience, "the trace in the access log", func() bool {
		return strings.Count(s.Output(), `"trace_id":"`+callersTrace+`"`) == 1
	})
	if page := s.openMetrics(t); !strings.Contains(page, `# {span_id="`+whole.ID+`",trace_id="`+callersTrace+`"}`) && !strings.Contains(page, `# {trace_id="`+callersTrace+`",span_id="`+whole.ID+`"}`) {
		t.Errorf("no exemplar: %s", page)
	}
}

// openMetrics is the page of metrics in the form that has exemplars.
func (s *scene) openMetrics(t *testing.T) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.MetricsAddr+"/metrics", nil)
	testkit.Must(t, err)
	r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	answer, err := http.DefaultClient.Do(r)
	testkit.Must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	testkit.Must(t, err)
	return string(text)
}
