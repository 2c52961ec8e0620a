//go:build soak

package traces_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/cabrank/cabrank/client"
	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/collector"
	"github.com/cabrank/cabrank/test/real/harness"
)

const ioPath = "/cabrank.example.v1.Work/Io"

// What a call is not sampled by, and what nobody can read, goes to the worker as it came, without
// a span; with a share of 1 a call without a trace, or with a malformed one, begins one.
func TestWhichCallsHaveSpans(t *testing.T) {
	s := newScene(t, ", sample: 1", "")
	for i, c := range []struct {
		name, parent string
		passed       bool // to the worker as it came
		own          bool // it begins a trace
	}{
		{"not sampled", notSampled, true, false},
		{"no trace", "", false, true},
		{"upper case", strings.ToUpper(sampled), false, true},
		{"version ff", "ff" + sampled[2:], false, true},
		{"too short", sampled[:54], false, true},
		{"more than there may be", sampled + "-00", false, true},
		{"no trace id", "00-00000000000000000000000000000000-" + callersSpan + "-01", false, true},
		{"no span id", "00-" + callersTrace + "-0000000000000000-01", false, true},
		{"flags that are none", sampled[:53] + "zz", false, true},
		{"a later version", "01" + sampled[2:] + "-more", false, false},
	} {
		fields := []string{"tracestate", "shop=1"}
		if c.parent != "" {
			fields = append(fields, "traceparent", c.parent)
		}
		before := len(s.spans.Spans())
		testkit.Must(t, s.call(t, 0, fields...))
		parent, state := s.worker.seen(t, i)
		testkit.Equal(t, parent == "1 "+c.parent, c.passed, "%s: the worker was told %s", c.name, parent)
		if own := !strings.Contains(parent, callersTrace); own != c.own || own != (state == "") {
			t.Errorf("%s: the worker was told %s, %s", c.name, parent, state)
		}
		if !c.passed {
			s.spans.Await(t, before+2)
		}
	}
	before := len(s.spans.Spans())
	long := strings.Repeat("x", 60<<10) // as much as a header list may have
	testkit.Must(t, s.call(t, 0, "traceparent", sampled, "tracestate", long))
	spans := s.spans.Await(t, before+2)
	testkit.Want(t, spans[before].State == "" && spans[before+1].State == "", "a span has a long tracestate")
	_, state := s.worker.seen(t, len(s.worker.told)-1)
	testkit.Want(t, state == "1 "+long, "the worker was told %.20s...", state)
	for _, span := range byName(s.spans.Spans())["call"] {
		if own := span.Trace != callersTrace; own && (span.Parent != "" || span.State != "") {
			t.Errorf("a trace that begins here: %+v", span)
		}
	}
}

// Each attempt has a span below the call's, and its worker is told of its own.
func TestTracesOfAttempts(t *testing.T) {
	s := newScene(t, "", "methods: {"+ioPath+": {idempotent: true, retries: 1, retry_on: [UNAVAILABLE]}}\n")
	s.worker.failing = 1
	testkit.Must(t, s.call(t, 0, "traceparent", sampled))
	of := byName(s.spans.Await(t, 3))
	testkit.Need(t, len(of["call"]) == 1 && len(of["first"]) == 1 && len(of["retry"]) == 1, "%+v", of)
	first, retry := of["first"][0], of["retry"][0]
	testkit.Want(t, first.Attributes["rpc.status_code"] == "UNAVAILABLE" && first.Failed && !retry.Failed && !of["call"][0].Failed,
		"%+v", of)
	for i, a := range []collector.Span{first, retry} {
		if parent, _ := s.worker.seen(t, i); a.Parent != of["call"][0].ID || parent != "1 00-"+callersTrace+"-"+a.ID+"-01" {
			t.Errorf("attempt %d: %+v, its worker was told %s", i, a, parent)
		}
	}
}

// A hedge has a span beside the first attempt's, which says that Cabrank has ended it.
func TestTracesOfHedges(t *testing.T) {
	s := newSceneOf(t, 2, "", "methods: {"+ioPath+": {idempotent: true, hedge_after: 50ms}}\n")
	testkit.Must(t, s.call(t, 0)) // a method that nobody has called leaves a slot
	s.worker.holding = 1
	testkit.Must(t, s.call(t, 0, "traceparent", sampled))
	of := byName(s.spans.Await(t, 3))
	testkit.Need(t, len(of["call"]) == 1 && len(of["first"]) == 1 && len(of["hedge"]) == 1, "%+v", of)
	first, hedge := of["first"][0], of["hedge"][0]
	if first.Attributes["cabrank.ended"] != "cancelled" || first.Parent != hedge.Parent || hedge.Start.Sub(first.Start) < 50*time.Millisecond || hedge.Failed {
		t.Errorf("%+v", of)
	}
	testkit.Want(t, first.Attributes["server.port"] != hedge.Attributes["server.port"], "both have one worker: %+v", of)
}

// descriptors is a file that describes the method.
func descriptors(t *testing.T) string {
	t.Helper()
	file := protodesc.ToFileDescriptorProto(workpb.File_cabrank_example_v1_work_proto)
	text, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{file}})
	testkit.Must(t, err)
	return harness.WriteFile(t, "work.pb", text)
}

// Calls of pages have spans like all others.
func TestTracesOfDoors(t *testing.T) {
	s := newScene(t, "", "descriptors: ["+descriptors(t)+"]\n")
	for i, c := range []struct{ door, kind, body string }{
		{"connect", "application/json", `{"millis":0}`},
		{"grpc-web", "application/grpc-web+proto", "\x00\x00\x00\x00\x00"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr+ioPath, strings.NewReader(c.body))
		testkit.Must(t, err)
		r.Header.Set("Content-Type", c.kind)
		r.Header.Set("Traceparent", sampled)
		answer, err := http.DefaultClient.Do(r)
		testkit.Must(t, err)
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		of := byName(s.spans.Await(t, 2*(i+1)))
		call := of["call"][i]
		testkit.Want(t, answer.StatusCode == http.StatusOK && call.Attributes["cabrank.door"] == c.door && call.Parent == callersSpan,
			"%s: %s, %+v", c.door, answer.Status, call)
		parent, _ := s.worker.seen(t, i)
		testkit.Want(t, strings.Contains(parent, of["first"][i].ID), "%s: the worker was told %s", c.door, parent)
	}
}

// A call over WebSocket has no traceparent: a share of them begins a trace.
func TestTracesOfSockets(t *testing.T) {
	s := newScene(t, ", sample: 1", "descriptors: ["+descriptors(t)+"]\nsocket: {path: /ws, methods: ['/cabrank.example.v1.Work/*']}\n")
	c, err := client.Dial(t.Context(), "ws://"+s.Addr+"/ws", client.Options{})
	testkit.Must(t, err)
	defer c.Close()
	_, err = c.Call(t.Context(), ioPath, map[string]int{"millis": 0})
	testkit.Must(t, err)
	of := byName(s.spans.Await(t, 2))
	testkit.Need(t, len(of["call"]) == 1 && len(of["first"]) == 1, "%+v", of)
	parent, _ := s.worker.seen(t, 0)
	testkit.Want(t, of["call"][0].Attributes["cabrank.door"] == "socket" && strings.Contains(parent, of["first"][0].ID), "%+v, the worker was told %s", of, parent)
}

// hang takes a request and does not answer it.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// No call waits for a collector that does not answer or answers with errors, what cannot be sent
// is counted, and a stop takes its time all the same.
func TestBadCollectors(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"hangs":    hang,
		"fails":    func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) },
		"rejects":  collector.Reject(2, "too old"),
		"is no it": func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "", "")
			s.spans.Instead(answer)
			began := time.Now()
			for range 50 {
				testkit.Must(t, s.call(t, 0, "traceparent", sampled))
			}
			took := time.Since(began)
			testkit.Want(t, took <= 10*time.Second, "50 calls took %v", took)
			if name != "hangs" {
				dropped := func() float64 {
					return s.Metric("cabrank_spans_total", "result", "failed") + s.Metric("cabrank_spans_total", "result", "rejected")
				}
				testkit.Eventually(t, harness.Patience, "spans that are counted", func() bool { return dropped() > 0 })
			}
			s.StopWithin(harness.StopBound)
		})
	}
}

// Strangers cannot make spans without end: 100 calls a second of an address have some, and
// memory stays in its bound.
func TestFloodOfSampledCalls(t *testing.T) {
	s := newScene(t, "", "")
	s.spans.Instead(hang)
	testkit.Must(t, s.call(t, 0))
	before := s.PeakMemory()
	began := time.Now()
	var calling sync.WaitGroup
	for range 20 {
		calling.Go(func() {
			for time.Since(began) < 10*time.Second {
				if err := s.call(t, 0, "traceparent", sampled, "tracestate", "a="+strings.Repeat("x", 4000)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	calling.Wait()
	seconds := time.Since(began).Seconds()
	spans := 0.0
	for _, result := range []string{"exported", "queue_full", "failed", "rejected"} {
		spans += s.Metric("cabrank_spans_total", "result", result)
	}
	limited := s.Metric("cabrank_spans_total", "result", "limited")
	t.Logf("%v calls beyond the limit, %v spans are over, %d KiB more at most", limited, spans, (s.PeakMemory()-before)>>10)
	most := 3 * 100 * (seconds + 1)
	testkit.Want(t, spans <= most, "%v spans in %v s, at most %v", spans, seconds, most)
	testkit.Want(t, limited != 0, "no call was beyond the limit")
	if more := s.PeakMemory() - before; more > 16<<20 {
		t.Errorf("%d bytes more", more)
	}
}

// An upgrade loses no span: the old process sends what it has before it ends.
func TestTracesOverAnUpgrade(t *testing.T) {
	spans := collector.Start(t)
	env := []string{"CABRANK_TRACING_ENDPOINT=" + spans.URL, "CABRANK_TRACING_SAMPLE=1"}
	m := harness.StartManaged(t, env, nil, append([]string{"--workers", "2", "--"}, harness.FaultWorker(t)...)...)
	m.WaitWorkers(2)
	m.WaitReady(harness.Patience)
	load := harness.StartLoad(t, m.Addr, 3, harness.ShortWork)
	load.WaitAnswered(t, "", 50)
	m.Upgrade()
	load.WaitAnswered(t, "", 50)
	calls := len(load.WantNoFailure(t))
	testkit.Eventually(t, harness.Patience, "a span of each call", func() bool { return len(byName(spans.Spans())["call"]) >= calls })
	if got := len(byName(spans.Spans())["call"]); got != calls {
		t.Errorf("%d spans of %d calls", got, calls)
	}
}
