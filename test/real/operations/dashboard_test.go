//go:build real || soak

package operations_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/demo/demopb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// dashboard is what the test needs of deploy/grafana/cabrank.json.
type dashboard struct {
	Panels []struct {
		Type        string `json:"type"`
		Title       string `json:"title"`
		Description string `json:"description"`
		Datasource  struct {
			UID string `json:"uid"`
		} `json:"datasource"`
		FieldConfig struct {
			Defaults struct {
				Unit string `json:"unit"`
			} `json:"defaults"`
		} `json:"fieldConfig"`
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
}

// Each alert fires on its series, and none on calm ones. Of a Cabrank that has had a little of
// everything, a real Prometheus has an answer to each question of the dashboard, and a value
// for each recording rule. A panel has a title, a unit, a sentence, and whatever source is chosen.
func TestDashboardAndAlerts(t *testing.T) {
	deploy := filepath.Join(harness.Root(t), "deploy")
	rules := filepath.Join(deploy, "prometheus", "cabrank.rules.yml")
	for _, args := range [][]string{{"check", "rules", rules}, {"test", "rules", filepath.Join(deploy, "prometheus", "cabrank.rules_test.yml")}} {
		harness.StartLine(t, append([]string{"promtool"}, args...)...).WantExit(harness.Patience, 0)
	}
	text, err := os.ReadFile(filepath.Join(deploy, "grafana", "cabrank.json"))
	testkit.Must(t, err)
	var board dashboard
	testkit.Must(t, json.Unmarshal(text, &board))
	c, server := eventful(t, rules)
	answered := func(what, query string) {
		t.Helper()
		testkit.Eventually(t, harness.Patience, what+": "+query, func() bool {
			return len(server.Series(t, query, time.Now(), time.Now())) > 0
		})
	}
	fill := strings.NewReplacer("$job", ".*", "$instance", ".*", "$method", ".*", "$__rate_interval", "5s")
	for _, p := range board.Panels {
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.FieldConfig.Defaults.Unit == "" || !strings.HasSuffix(p.Description, ".") || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("panel %q: unit %q, %q, source %q, %d queries", p.Title, p.FieldConfig.Defaults.Unit, p.Description, p.Datasource.UID, len(p.Targets))
		}
		for _, target := range p.Targets {
			answered(p.Title, fill.Replace(target.Expr))
		}
	}
	text, err = os.ReadFile(rules)
	testkit.Must(t, err)
	for _, record := range regexp.MustCompile(`record: (\S+)`).FindAllSubmatch(text, -1) {
		answered("a rule", string(record[1]))
	}
	c.Stop()
}

// eventful is a Cabrank whose calls were answered, hedged, late, and tried again, and whose
// workers were killed and replaced, before the eyes of Prometheus.
func eventful(t *testing.T, rules string) (*harness.Cabrank, *harness.Prometheus) {
	t.Helper()
	config, _, _ := harness.WithTLS(t, `tls_clear: allow
socket.path: /ws
methods: {/cabrank.demo.v1.Greeter/SayHello: {idempotent: true, retries: 2, hedge_after: 1ms}}
`)
	control := filepath.Join(harness.ShortTempDir(t), "control")
	c := harness.StartCabrank(t, "--config", config, "--control", control, "--workers", "2", "--", harness.CabrankBinary(t), "demo", "worker", "--work", "200ms").Booted(2)
	operator := harness.NewOperator(t, control)
	greeter := demopb.NewGreeterClient(harness.Dial(t, c.Addr))
	call := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, err := greeter.SayHello(ctx, &demopb.HelloRequest{Name: "prometheus"})
		return err
	}
	testkit.Must(t, call(harness.Patience))
	testkit.Want(t, call(50*time.Millisecond) != nil, "a call of 200 ms has ended within 50")
	// A call that has lost both of its attempts is tried again.
	done := make(chan error, 1)
	go func() { done <- call(harness.Patience) }()
	testkit.Eventually(t, harness.Patience, "a call at two workers", func() bool { return c.Metric("cabrank_in_flight") == 2 })
	for _, worker := range []string{"worker-1", "worker-2"} {
		c.KillPID(c.ReadyPIDs(worker)[0])
	}
	testkit.Must(t, <-done)
	c.WaitWorkers(4)
	testkit.Must(t, operator.Run(harness.ChangeLimit, "drain", "worker-2"))
	stranger, err := net.Dial("tcp", c.Addr)
	testkit.Must(t, err)
	defer stranger.Close()
	_, err = stranger.Write([]byte("HELO there\r\n\r\n"))
	testkit.Must(t, err)
	server := harness.StartPrometheusWith(t, rules, c.MetricsAddr)
	testkit.Must(t, call(harness.Patience))
	return c, server
}
