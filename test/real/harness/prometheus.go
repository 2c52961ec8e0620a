//go:build real || soak

package harness

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Prometheus is a running Prometheus.
type Prometheus struct{ url string }

// StartPrometheus starts Debian's, which asks metrics pages five times a second, and waits
// until it has read all of them.
func StartPrometheus(t testing.TB, targets ...string) *Prometheus {
	t.Helper()
	return StartPrometheusWith(t, "", targets...)
}

// StartPrometheusWith does so with a file of rules, which it evaluates as often.
func StartPrometheusWith(t testing.TB, rules string, targets ...string) *Prometheus {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := "global: {scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 200ms}\nrule_files: ['" + rules + "']\n" +
		"scrape_configs: [{job_name: cabrank, static_configs: [{targets: ['" + strings.Join(targets, "', '") + "']}]}]\n"
	testkit.Must(t, os.WriteFile(config, []byte(text), 0o600))
	at := fmt.Sprintf("127.0.0.1:%d", testkit.FreePorts(t, 1))
	p := StartProcess(t, nil, "/usr/bin/env", "prometheus", "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+at, "--log.level=warn")
	server := &Prometheus{url: "http://" + at}
	p.Wait(Patience, "pages that Prometheus has read", func() bool {
		found, err := server.ask("query?" + url.Values{"query": {"up == 1"}}.Encode())
		return err == nil && len(found) == len(targets)
	})
	return server
}

// Values are those of a query with one series, five in a second.
func (p *Prometheus) Values(t testing.TB, query string, from, to time.Time) (values []float64) {
	t.Helper()
	found := p.Series(t, query, from, to)
	testkit.Need(t, len(found) == 1, "%s: %v", query, found)
	return found[0]
}

// Series are the values of all series of a query, five in a second.
func (p *Prometheus) Series(t testing.TB, query string, from, to time.Time) (all [][]float64) {
	t.Helper()
	second := func(at time.Time) string { return strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64) }
	found, err := p.ask("query_range?" + url.Values{
		"query": {query}, "start": {second(from)}, "end": {second(to)}, "step": {"0.2"},
	}.Encode())
	testkit.Need(t, err == nil, "%s: %v", query, err)
	for _, series := range found {
		var values []float64
		for _, point := range series.Values {
			text, _ := point[1].(string)
			value, err := strconv.ParseFloat(text, 64)
			testkit.Must(t, err)
			values = append(values, value)
		}
		all = append(all, values)
	}
	return all
}

// oneSeries is a series in an answer of Prometheus.
type oneSeries struct {
	Values [][2]any `json:"values"`
}

func (p *Prometheus) ask(what string) ([]oneSeries, error) {
	client := http.Client{Timeout: Patience}
	defer client.CloseIdleConnections()
	reply, err := client.Get(p.url + "/api/v1/" + what)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	var answer struct {
		Error string `json:"error"`
		Data  struct {
			Result []oneSeries `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(reply.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("Prometheus: %s", answer.Error)
	}
	return answer.Data.Result, nil
}
