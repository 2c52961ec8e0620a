package admin

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/scrape"
	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/worker"
)

func startMetrics(t *testing.T, sources Sources) string {
	t.Helper()
	s, err := ServeMetrics(loopback(t), "/metrics", sources, quiet())
	testkit.Must(t, err)
	stopAtEnd(t, s)
	return "http://" + s.Addr().String()
}

// get returns the status, the content type and the body.
func get(t *testing.T, url string) (status int, contentType, body string) {
	t.Helper()
	client := http.Client{Timeout: 30 * time.Second}
	answer, err := client.Get(url)
	testkit.Must(t, err)
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	testkit.Must(t, err)
	return answer.StatusCode, answer.Header.Get("Content-Type"), string(content)
}

// ours keeps the lines of the page that are cabrank's own.
func ours(body string) string {
	var kept strings.Builder
	for line := range strings.Lines(body) {
		if strings.Contains(line, "cabrank_") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

func fullSources() Sources {
	return Sources{
		Build: Build{Version: "1.2.3", Commit: "abc"},
		Traffic: traffic{relay.Stats{
			Methods: []stats.MethodStats{{
				Method:  "/demo.Jobs/GetJob",
				Codes:   map[string]uint64{"OK": 5, "UNAVAILABLE": 1},
				Seconds: stats.Histogram{Bounds: []float64{0.1, 1}, Counts: []uint64{3, 2, 1}, Sum: 4.5},
				Wait:    stats.Histogram{Bounds: []float64{0.1, 1}, Counts: []uint64{6, 0, 0}, Sum: 0.25},
				Work:    stats.Histogram{Bounds: []float64{0.1, 1}, Counts: []uint64{4, 1, 0}, Sum: 3.5},
			}},
			Refusals: map[string]uint64{"queue_full": 2},
			Retries:  map[string]uint64{"worker_lost": 3}, RetriesDenied: map[string]uint64{"budget": 1},
			Hedges: map[string]uint64{"won": 6},
			Doors:  map[string]map[string]uint64{"grpc": {"OK": 9}},

			Connections: 12,
			Buffered:    4096,
		}},
		Slots: func() []rank.EndpointState {
			return []rank.EndpointState{{Name: "worker-1", InFlight: 3, Slots: 5, Limit: 4, Ghosts: 1, Suspect: true, Pace: 2.5}}
		},
		Workers: func() []worker.Status {
			return []worker.Status{{
				Name: "worker-1", State: worker.Ready,
				Restarts: map[worker.Cause]int{worker.CauseExit: 4}, Retired: map[worker.Reason]int{worker.ReasonRoll: 2},
			}}
		},
	}
}

// traffic is that of a queue in which 7 calls wait.
type traffic struct{ stats relay.Stats }

func (t traffic) Stats() relay.Stats         { return t.stats }
func (traffic) Waiting() int                 { return 7 }
func (traffic) Overloaded() bool             { return true }
func (traffic) Decisions() map[string]uint64 { return map[string]uint64{"queued": 8} }
func (traffic) Rank() rank.Snapshot {
	return rank.Snapshot{Lanes: []rank.LaneState{{Name: "admin", Waiting: 2, Running: 1}}, LongCalls: 3, Accounts: 9}
}

func TestMetricsPage(t *testing.T) {
	status, contentType, body := get(t, startMetrics(t, fullSources())+"/metrics")
	// The type that gruf-relay's page had.
	testkit.Want(t, status == 200 && contentType == "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
		"status %d, type %q", status, contentType)
	want := []string{
		`cabrank_build_info{commit="abc",go_version="` + runtime.Version() + `",version="1.2.3"} 1`,
		`cabrank_calls_total{code="OK",method="/demo.Jobs/GetJob"} 5`,
		`cabrank_calls_total{code="UNAVAILABLE",method="/demo.Jobs/GetJob"} 1`,
		`cabrank_call_seconds_bucket{method="/demo.Jobs/GetJob",le="0.1"} 3`,
		`cabrank_call_seconds_bucket{method="/demo.Jobs/GetJob",le="1"} 5`,
		`cabrank_call_seconds_bucket{method="/demo.Jobs/GetJob",le="+Inf"} 6`,
		`cabrank_call_seconds_sum{method="/demo.Jobs/GetJob"} 4.5`,
		`cabrank_call_seconds_count{method="/demo.Jobs/GetJob"} 6`,
		`cabrank_queue_wait_seconds_sum{method="/demo.Jobs/GetJob"} 0.25`,
		`cabrank_queue_wait_seconds_count{method="/demo.Jobs/GetJob"} 6`,
		`cabrank_worker_seconds_sum{method="/demo.Jobs/GetJob"} 3.5`,
		`cabrank_worker_seconds_count{method="/demo.Jobs/GetJob"} 5`,
		`cabrank_refusals_total{reason="queue_full"} 2`,
		`cabrank_retries_total{reason="worker_lost"} 3`,
		`cabrank_retries_denied_total{reason="budget"} 1`,
		`cabrank_hedges_total{result="won"} 6`,
		`cabrank_door_calls_total{code="OK",door="grpc"} 9`,
		`cabrank_connections 12`,
		`cabrank_buffered_bytes 4096`,
		`cabrank_queue_length 7`,
		`cabrank_in_flight{worker="worker-1"} 3`,
		`cabrank_slots{worker="worker-1"} 5`,
		`cabrank_slots_usable{worker="worker-1"} 4`,
		`cabrank_ghosts{worker="worker-1"} 1`,
		`cabrank_suspect{worker="worker-1"} 1`,
		`cabrank_worker_pace{worker="worker-1"} 2.5`,
		`cabrank_lane_waiting{lane="admin"} 2`,
		`cabrank_lane_running{lane="admin"} 1`,
		`cabrank_long_calls 3`,
		`cabrank_callers 9`,
		`cabrank_overload 1`,
		`cabrank_decisions_total{decision="queued"} 8`,
		`cabrank_worker_state{state="starting",worker="worker-1"} 0`,
		`cabrank_worker_state{state="ready",worker="worker-1"} 1`,
		`cabrank_worker_restarts_total{cause="exit",worker="worker-1"} 4`,
		"# TYPE cabrank_calls_total counter", "# TYPE cabrank_call_seconds histogram", "# TYPE cabrank_queue_wait_seconds histogram",
		"# TYPE cabrank_refusals_total counter", "# TYPE cabrank_worker_restarts_total counter", "# TYPE cabrank_queue_length gauge",
	}
	for _, line := range want {
		testkit.Want(t, strings.Contains(body, line+"\n"), "no line %s in\n%s", line, ours(body))
	}
	for _, name := range []string{"go_goroutines", "go_sync_mutex_wait_total_seconds_total", "process_start_time_seconds"} {
		testkit.Want(t, runtime.GOOS != "linux" || strings.Contains(body, "\n"+name+" "), "no %s", name)
	}
}

func TestMetricsOnOtherPathsAreNotFound(t *testing.T) {
	url := startMetrics(t, fullSources())
	for _, path := range []string{"/", "/metrics/", "/startup"} {
		status, _, _ := get(t, url+path)
		testkit.Want(t, status == 404, "GET %s: %d", path, status)
	}
}

// Braces are wildcards to net/http's mux; here they are a path like any other.
func TestOddMetricsPath(t *testing.T) {
	s, err := ServeMetrics(loopback(t), "/{m", Sources{}, quiet())
	testkit.Must(t, err)
	stopAtEnd(t, s)
	status, _, _ := get(t, "http://"+s.Addr().String()+"/%7Bm")
	testkit.Want(t, status == 200, "status %d", status)
}

// Without any source the page still has the binary and the process.
func TestEmptySources(t *testing.T) {
	status, _, body := get(t, startMetrics(t, Sources{})+"/metrics")
	testkit.Want(t, status == 200 && strings.Contains(body, "cabrank_build_info") && !strings.Contains(body, "cabrank_queue_length"),
		"status %d\n%s", status, ours(body))
}

// Whatever labels and numbers come, the page answers (gruf-relay died of an
// empty value and of one with a comma).
func TestOddSamples(t *testing.T) {
	sources := fullSources()
	odd := []string{"", "a,b", "two\nlines", `quote " and \`, "bad \xff\xfe utf-8", "\x00", "bad \xfe utf-8", strings.Repeat("x", 100_000), "dup", "dup"}
	all := relay.Stats{Refusals: map[string]uint64{}}
	for _, name := range odd {
		all.Refusals[name] = 1
		all.Methods = append(all.Methods, stats.MethodStats{
			Method:  name,
			Codes:   map[string]uint64{name: 1},
			Seconds: stats.Histogram{Bounds: []float64{1, 1, 2}, Counts: []uint64{1}, Sum: 1},
			Wait:    stats.Histogram{Counts: []uint64{1, 2, 3}},
		})
	}
	sources.Traffic = traffic{all}
	sources.Workers = func() []worker.Status { return []worker.Status{{Name: "w", State: worker.Vacant}, {Name: "\xff"}} }
	status, _, body := get(t, startMetrics(t, sources)+"/metrics")
	testkit.Need(t, status == 200, "status %d\n%.2000s", status, body)
	for _, line := range []string{
		`cabrank_refusals_total{reason="bad \\xff\\xfe utf-8"} 1`,
		`cabrank_refusals_total{reason="two\nlines"} 1`,
		`cabrank_refusals_total{reason="a,b"} 1`,
		`cabrank_worker_state{state="vacant",worker="w"} 1`,
		`cabrank_queue_length 7`,
	} {
		testkit.Want(t, strings.Contains(body, line+"\n"), "no line %s", line)
	}
}

// The page may be asked for from several sides at once; what is too much gets
// 503 and not a place in a queue.
func TestScrapesAtOnce(t *testing.T) {
	url := startMetrics(t, fullSources())
	var all sync.WaitGroup
	answers := make(chan string, 32)
	for range cap(answers) {
		all.Go(func() {
			client := http.Client{Timeout: 30 * time.Second}
			answer, err := client.Get(url + "/metrics")
			if err != nil {
				answers <- err.Error()
				return
			}
			answers <- fmt.Sprint(answer.StatusCode)
			answer.Body.Close()
		})
	}
	all.Wait()
	close(answers)
	for answer := range answers {
		testkit.Want(t, answer == "200" || answer == "503", "a scrape ended with %s", answer)
	}
}

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
	testkit.Equal(t, pageText(t, joined{own: own, merged: store}, expfmt.NewFormat(expfmt.TypeTextPlain)), want, "the page")
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
