//go:build real || soak

package operations_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Every metric is there after a few calls, in a form that Prometheus reads,
// with the labels that dashboards rely on and values that add up.
func TestMetricsAddUp(t *testing.T) {
	const method = "/cabrank.example.v1.Work/Io"
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "2", "--slots", "3").Booted(2)
	conn := harness.Dial(t, c.Addr)
	for range 10 {
		harness.CallIo(t.Context(), conn, "1", 0).WantOK(t)
	}
	c.WaitMetric("cabrank_calls_total", 10, "method", method, "code", "OK")
	c.KillPID(c.ReadyPIDs("worker-1")[0])
	c.WaitMetric("cabrank_worker_restarts_total", 1, "worker", "worker-1", "cause", "signal")
	c.WaitMetric("cabrank_worker_state", 2, "state", "ready")

	for name, labels := range map[string][]string{
		"cabrank_calls_total":             {"code", "method"},
		"cabrank_call_seconds":            {"method"},
		"cabrank_queue_wait_seconds":      {"method"},
		"cabrank_worker_seconds":          {"method"},
		"cabrank_queue_length":            nil,
		"cabrank_in_flight":               {"worker"},
		"cabrank_slots":                   {"worker"},
		"cabrank_slots_usable":            {"worker"},
		"cabrank_ghosts":                  {"worker"},
		"cabrank_suspect":                 {"worker"},
		"cabrank_worker_pace":             {"worker"},
		"cabrank_lane_waiting":            {"lane"},
		"cabrank_lane_running":            {"lane"},
		"cabrank_long_calls":              nil,
		"cabrank_callers":                 nil,
		"cabrank_overload":                nil,
		"cabrank_decisions_total":         {"decision"},
		"cabrank_worker_state":            {"state", "worker"},
		"cabrank_worker_restarts_total":   {"cause", "worker"},
		"cabrank_refusals_total":          {"reason"},
		"cabrank_connections_ended_total": {"reason", "side"},
		"cabrank_connections":             nil,
		"cabrank_buffered_bytes":          nil,
		"cabrank_buffered_limit_bytes":    nil,
		"cabrank_connections_limit":       nil,
		"cabrank_lines_dropped_total":     {"of"},
		"cabrank_build_info":              {"commit", "go_version", "version"},
	} {
		found := c.Samples()[name]
		if len(found) == 0 {
			t.Errorf("no %s", name)
			continue
		}
		testkit.EqualList(t, slices.Sorted(maps.Keys(found[0].Labels)), labels, "labels of %s", name)
	}
	for _, want := range []struct {
		name   string
		value  float64
		labels []string
	}{
		{"cabrank_call_seconds", 10, []string{"method", method}},
		{"cabrank_queue_wait_seconds", 10, []string{"method", method}},
		{"cabrank_worker_seconds", 10, []string{"method", method}},
		{"cabrank_slots", 6, nil},
		{"cabrank_slots_usable", 6, nil},
		{"cabrank_callers", 1, nil},
		{"cabrank_in_flight", 0, nil},
		{"cabrank_queue_length", 0, nil},
		{"cabrank_connections", 1, nil},
		{"cabrank_build_info", 1, nil},
	} {
		testkit.Equal(t, c.Metric(want.name, want.labels...), want.value, "%s%v", want.name, want.labels)
	}
}

// The method label is made of what workers answer, not of what callers ask
// for: nobody can fill the page from outside.
func TestUnknownMethodsAreOther(t *testing.T) {
	const asked = 300
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "1").Booted(1)
	conn := harness.Dial(t, c.Addr)
	for i := range asked {
		testkit.Need(t, conn.Invoke(t.Context(), fmt.Sprintf("/no.Such/Method%d", i), &workpb.FailReply{}, &workpb.FailReply{}) != nil,
			"a method that does not exist was answered")
	}
	c.WaitMetric("cabrank_calls_total", asked, "method", "other", "code", "UNIMPLEMENTED")
	methods := len(c.Samples()["cabrank_call_seconds"])
	testkit.Want(t, methods <= 2, "%d methods on the page, want at most one beside %q", methods, "other")
}
