package admin

import (
	"bytes"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/cabrank/cabrank/internal/scrape"
	"github.com/cabrank/cabrank/internal/testkit"
)

// Workers' metrics stand beside cabrank's own: of equal names they have the label worker
// and cabrank's help, and no worker can say something in cabrank's name (D33).
func TestJoined(t *testing.T) {
	own := prometheus.NewRegistry()
	cpu := prometheus.NewCounter(prometheus.CounterOpts{Name: "process_cpu_seconds_total", Help: "Ours."})
	mine := prometheus.NewGauge(prometheus.GaugeOpts{Name: "cabrank_sockets", Help: "Ours."})
	own.MustRegister(cpu, mine)
	store := scrape.NewStore(scrape.Options{Rules: []scrape.Rule{{Pattern: "go_*", Policy: scrape.Sum}}})
	page := "# HELP process_cpu_seconds_total Theirs.\n# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 5\n" +
		"cabrank_sockets 7\n# TYPE old counter\nold 3\n# TYPE a_total counter\na_total 1\n"
	testkit.Must(t, store.Join("worker-1").ReadText([]byte(page)))
	want := `# TYPE a_total counter
a_total 1
# HELP cabrank_sockets Ours.
# TYPE cabrank_sockets gauge
cabrank_sockets 0
# TYPE old counter
old 3
# HELP process_cpu_seconds_total Ours.
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 0
process_cpu_seconds_total{worker="worker-1"} 5
`
	if got := pageText(t, joined{own: own, merged: store}, expfmt.NewFormat(expfmt.TypeTextPlain)); got != want {
		t.Errorf("page is\n%swant\n%s", got, want)
	}
	// OpenMetrics would call it old_total.
	if got := pageText(t, joined{own: own, merged: store, open: true}, expfmt.NewFormat(expfmt.TypeOpenMetrics)); !strings.Contains(got, "# TYPE old unknown\nold 3") {
		t.Errorf("page is\n%s", got)
	}
}

func pageText(t *testing.T, from prometheus.Gatherer, format expfmt.Format) string {
	t.Helper()
	families, err := from.Gather()
	testkit.Must(t, err)
	var b bytes.Buffer
	to := expfmt.NewEncoder(&b, format)
	for _, f := range families {
		testkit.Must(t, to.Encode(f))
	}
	return b.String()
}
