//go:build real || soak

package languages_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A real Prometheus sees neither a spike nor a fall of the rate while workers with
// hundreds of calls behind each are rolled and killed.
func TestPrometheusSeesNoSpike(t *testing.T) {
	m := startCounted(t, countedWorkers(t, harness.ShortTempDir(t))["ruby"])
	conn := harness.Dial(t, m.Addr)
	if failed := harness.CallCPU(t, conn, 1000, 8); len(failed) > 0 {
		t.Error(failed)
	}
	m.await(1000) // a worker that counted twice, or from zero, would be seen
	server := startPrometheus(t, m.MetricsAddr)
	done := make(chan error, 1)
	go func() {
		err := m.operator.Run(harness.ChangeLimit, "restart")
		if err == nil {
			err = m.kill()
		}
		done <- err
	}()
	const perSecond = 50
	client, calls, over := workpb.NewWorkClient(conn), 0, false
	began, pace := time.Now(), time.NewTicker(time.Second/perSecond)
	defer pace.Stop()
	for !over || time.Since(began) < 5*time.Second {
		<-pace.C
		calls++
		// The worker that is killed may take a call with it.
		if err := harness.CallCPUOnce(t.Context(), client); err != nil {
			t.Log(err)
		}
		select {
		case err := <-done:
			over = true
			if err != nil {
				t.Fatal(err)
			}
		default:
		}
	}
	// In the first window the calls begin.
	rates := server.values(t, "sum(rate("+m.counted.calls+"[2s]))", began.Add(3*time.Second), time.Now())
	if len(rates) < 10 {
		t.Fatalf("%d rates", len(rates))
	}
	for _, rate := range rates {
		if rate < 0 || rate > 4*perSecond { // a worker that counted twice makes it more
			t.Errorf("a rate of %v calls per second, where there are %v: %v", rate, float64(calls)/time.Since(began).Seconds(), rates)
			break
		}
	}
	resets := server.values(t, "sum(resets("+m.counted.calls+"[5m])) + sum(resets("+m.counted.seconds+"_count[5m]))", time.Now(), time.Now())
	if len(resets) != 1 || resets[0] != 0 {
		t.Errorf("resets: %v", resets)
	}
	t.Logf("%d calls, rates %.0f", calls, rates)
	m.Stop()
}

// prometheus is a running Prometheus.
type prometheus struct{ url string }

// startPrometheus starts Debian's, which asks a metrics page five times a second.
func startPrometheus(t *testing.T, target string) *prometheus {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := "global: {scrape_interval: 200ms, scrape_timeout: 200ms}\n" +
		"scrape_configs: [{job_name: cabrank, static_configs: [{targets: ['" + target + "']}]}]\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("127.0.0.1:%d", testkit.FreePorts(t, 1))
	p := harness.StartProcess(t, nil, "/usr/bin/env", "prometheus", "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+at, "--log.level=warn")
	server := &prometheus{url: "http://" + at}
	p.Wait(harness.Patience, "a page that Prometheus has read", func() bool {
		page, err := get(server.url + "/api/v1/query?query=up")
		return err == nil && len(series(page)) == 1
	})
	return server
}

// values are those of a query with one series, five in a second.
func (p *prometheus) values(t *testing.T, query string, from, to time.Time) (values []float64) {
	t.Helper()
	second := func(at time.Time) string { return strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64) }
	page, err := get(p.url + "/api/v1/query_range?" + url.Values{
		"query": {query}, "start": {second(from)}, "end": {second(to)}, "step": {"0.2"},
	}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	found := series(page)
	if len(found) != 1 {
		t.Fatalf("%s: %s", query, page)
	}
	for _, point := range found[0].Values {
		text, _ := point[1].(string)
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
	}
	return values
}

// oneSeries is a series in an answer of Prometheus.
type oneSeries struct {
	Values [][2]any `json:"values"`
}

func series(page string) []oneSeries {
	var answer struct {
		Data struct {
			Result []oneSeries `json:"result"`
		} `json:"data"`
	}
	_ = json.Unmarshal([]byte(page), &answer)
	return answer.Data.Result
}
