// Package collector is a collector of OpenTelemetry for tests: it takes spans by OTLP over
// HTTP, with the types of the real one.
//
// Start from Start.
package collector

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Span is one that has come. Ids are hexadecimal; Parent is "" if it has none.
type Span struct {
	Trace, ID, Parent string
	State             string
	Flags             uint32
	Name, Kind        string // Kind is Server, Client or Internal
	Start, End        time.Time
	Attributes        map[string]any
	Resource          map[string]any
	Failed            bool // its status is Error
}

// Collector is one.
type Collector struct {
	// URL is without a path, as OTEL_EXPORTER_OTLP_ENDPOINT.
	URL string

	mu       sync.Mutex
	instead  http.HandlerFunc
	requests []*http.Request
	spans    []Span
	fault    error
}

// Start starts one for a test, which fails if a request is malformed.
func Start(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{}
	server := httptest.NewServer(http.HandlerFunc(c.serve))
	c.URL = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		if c.fault != nil {
			t.Errorf("a request to the collector: %v", c.fault)
		}
	})
	return c
}

// Instead has requests answered in another way, or by the collector again if it is nil.
func (c *Collector) Instead(answer http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.instead = answer
}

// Reject answers that so many spans were rejected.
func Reject(spans int64, why string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		answer := ptraceotlp.NewExportResponse()
		answer.PartialSuccess().SetRejectedSpans(spans)
		answer.PartialSuccess().SetErrorMessage(why)
		write(w, answer)
	}
}

func write(w http.ResponseWriter, answer ptraceotlp.ExportResponse) {
	body, _ := answer.MarshalProto()
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(body)
}

// Spans returns those that have come.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Requests returns those that have come, without their bodies.
func (c *Collector) Requests() []*http.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.requests)
}

// Await waits until so many spans have come, and returns all.
func (c *Collector) Await(t testing.TB, n int) []Span {
	t.Helper()
	testkit.Eventually(t, 30*time.Second, fmt.Sprintf("%d spans", n), func() bool { return len(c.Spans()) >= n })
	return c.Spans()
}

func (c *Collector) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.requests = append(c.requests, r)
	instead := c.instead
	c.mu.Unlock()
	if instead != nil {
		instead(w, r)
		return
	}
	spans, err := Read(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans = append(c.spans, spans...)
	if err != nil {
		c.fault = err
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	write(w, ptraceotlp.NewExportResponse())
}

// Read reads the spans of a request.
func Read(r *http.Request) ([]Span, error) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		return nil, fmt.Errorf("%s %s with %s", r.Method, r.URL.Path, r.Header.Get("Content-Type"))
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		plain, err := gzip.NewReader(body)
		if err != nil {
			return nil, err
		}
		body = plain
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	request := ptraceotlp.NewExportRequest()
	if err := request.UnmarshalProto(text); err != nil {
		return nil, err
	}
	var all []Span
	for _, process := range request.Traces().ResourceSpans().All() {
		for _, scope := range process.ScopeSpans().All() {
			for _, s := range scope.Spans().All() {
				all = append(all, spanOf(process.Resource(), s))
			}
		}
	}
	return all, nil
}

func spanOf(process pcommon.Resource, s ptrace.Span) Span {
	return Span{
		Trace: s.TraceID().String(), ID: s.SpanID().String(), Parent: s.ParentSpanID().String(),
		State: s.TraceState().AsRaw(), Flags: s.Flags(), Name: s.Name(), Kind: s.Kind().String(),
		Start: s.StartTimestamp().AsTime(), End: s.EndTimestamp().AsTime(),
		Attributes: s.Attributes().AsRaw(), Resource: process.Attributes().AsRaw(),
		Failed: s.Status().Code() == ptrace.StatusCodeError,
	}
}
