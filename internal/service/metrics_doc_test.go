package service

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/discover"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/scale"
	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/worker"
)

// docs/metrics.md explains every metric and every fixed value of a label: what
// an alert is made of must be found by a search.
func TestMetricsAreDocumented(t *testing.T) {
	document := testkit.ReadFile(t, "../../docs/metrics.md")
	house := relay.New(relay.Options{Shards: 1, QueueTimeout: time.Second, BufferTotal: 1 << 20, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(house.Close)
	names := metricNames(t, house)
	stats := house.Stats()
	for _, counted := range []map[string]uint64{stats.Refusals, stats.Retries, stats.RetriesDenied, stats.Hedges, stats.Disconnects["caller"], house.Decisions()} {
		names = slices.AppendSeq(names, maps.Keys(counted))
	}
	names = append(append(names, texts(worker.Causes())...), texts(worker.Reasons())...)
	names = append(append(names, texts(scale.Reasons()[scale.Enough+1:])...), texts(discover.States())...)
	names = append(append(names, texts(worker.States())...), "answered", "empty", "failed") // results of lookups
	for _, name := range names {
		testkit.Want(t, strings.Contains(string(document), "\n| `"+name+"` |"), "docs/metrics.md has no row for %q", name)
	}
}

func texts[T fmt.Stringer](of []T) (all []string) {
	for _, one := range of {
		all = append(all, one.String())
	}
	return all
}

// oneMethod is a relay of which one method was called.
type oneMethod struct{ *relay.Relay }

func (o oneMethod) Stats() relay.Stats {
	all := o.Relay.Stats()
	all.Methods = append(all.Methods, stats.MethodStats{
		Method: "/a.B/C", Codes: map[string]uint64{"OK": 1},
		Seconds: stats.Histogram{Counts: []uint64{1}}, Wait: stats.Histogram{Counts: []uint64{1}},
		Work: stats.Histogram{Counts: []uint64{1}},
	})
	return all
}

// metricNames returns the names of cabrank's own metrics, from the page.
func metricNames(t *testing.T, house *relay.Relay) []string {
	t.Helper()
	slots := func() []rank.EndpointState { return []rank.EndpointState{{Name: "worker-1"}} }
	workers := func() []worker.Status {
		return []worker.Status{{Name: "worker-1", Restarts: map[worker.Cause]int{worker.CauseExit: 1}, Retired: map[worker.Reason]int{worker.ReasonRoll: 1}}}
	}
	upstreams := func() []discover.Status { return []discover.Status{{Name: "10.0.0.1:1"}} }
	lookups := func() []discover.Lookups {
		return []discover.Lookups{{Name: "dns:w:1", Addresses: 1, Results: map[string]uint64{"answered": 1}}}
	}
	scaled := func() admin.ScaleSample {
		return admin.ScaleSample{Adapts: true, Decisions: map[string]uint64{"load": 1}}
	}
	on := testkit.Listen(t)
	server, err := admin.ServeMetrics(on, "/metrics",
		admin.Sources{
			Traffic: oneMethod{house}, Slots: slots, Workers: workers, Upstreams: upstreams, Lookups: lookups, Scale: scaled,
			LinesDropped: func() map[string]uint64 { return map[string]uint64{"log": 1} },
		},
		slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		err := server.Shutdown(context.Background())
		testkit.Want(t, err == nil, "%v", err)
	})
	answer, err := http.Get("http://" + server.Addr().String() + "/metrics")
	testkit.Must(t, err)
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	testkit.Must(t, err)
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (cabrank_\w+) `).FindAllSubmatch(page, -1) {
		names = append(names, string(m[1]))
	}
	testkit.Need(t, len(slices.Compact(names)) == 37, "metrics on the page: %v, want 37", names)
	return names
}
