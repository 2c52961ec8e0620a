//go:build real || soak

package fibonacci_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

func example(t *testing.T, name string) string {
	t.Helper()
	text := testkit.ReadFile(t, filepath.Join(harness.Root(t), "examples", "fibonacci", filepath.FromSlash(name)))
	return string(text)
}

func readme(t *testing.T) string {
	t.Helper()
	return example(t, "README.md")
}

// Every variable that the programs read is in the README, and no other.
func TestReadmeNamesTheSettings(t *testing.T) {
	text := readme(t)
	variable := regexp.MustCompile(`"([A-Z][A-Z_]{3,})"`)
	read := map[string]bool{}
	for _, m := range variable.FindAllStringSubmatch(example(t, "settings.py"), -1) {
		read[m[1]] = true
		testkit.Want(t, strings.Contains(text, "`"+m[1]+"`"), "README.md does not say what %s is", m[1])
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)`").FindAllStringSubmatch(text, -1) {
		testkit.Want(t, read[m[1]], "README.md explains %s, which nobody reads", m[1])
	}
}

type panel struct {
	Title       string `json:"title"`
	Type        string `json:"type"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
	Panels []panel `json:"panels"`
}

// panels are those of the dashboard.
func panels(t *testing.T) []panel {
	t.Helper()
	var board struct {
		Panels []panel `json:"panels"`
	}
	testkit.Must(t, json.Unmarshal([]byte(example(t, "grafana.json")), &board))
	return slices.DeleteFunc(board.Panels, func(p panel) bool { return p.Type == "row" })
}

// A real Prometheus has an answer to each question of the dashboard, and its spread is that
// of three servers one of which gets every call.
func TestDashboardSeesOneServer(t *testing.T) {
	for _, f := range flavours() {
		t.Run(f.name, func(t *testing.T) {
			var servers []*server
			var pages []string
			for i := range 3 {
				s := startServer(t, f.server, fmt.Sprintf("POD_NAME=srv-%d", i+1))
				servers, pages = append(servers, s), append(pages, fmt.Sprintf("127.0.0.1:%d", s.metrics))
			}
			front := startFront(t, f.front, servers[0].addr)
			prometheus := harness.StartPrometheus(t, append(pages, strings.TrimPrefix(front.url, "http://"))...)
			ask := func(query string) [][]float64 {
				now := time.Now()
				return prometheus.Series(t, strings.NewReplacer("$mode", "Normal", "$__rate_interval", "2s").Replace(query), now, now)
			}
			for _, p := range panels(t) {
				for _, target := range p.Targets {
					testkit.Eventually(t, harness.Patience, p.Title, func() bool {
						get(t, front.url+"/fibonacci/random?iterations=10&output=false")
						found := ask(target.Expr)
						return len(found) > 0 && (p.Title != "Spread" || len(found[0]) == 1 && math.Abs(found[0][0]-math.Sqrt2) < 0.01)
					})
				}
			}
		})
	}
}

// The dashboard asks for metrics that there are, of the way that its row is for, and
// every panel has a unit.
func TestDashboard(t *testing.T) {
	s := startServer(t, "server.py")
	front := startFront(t, "front.py", s.addr)
	get(t, front.url+"/fibonacci")
	_, page, _ := get(t, front.url+"/metrics")
	page += s.page(t)
	metric := regexp.MustCompile(`grpc_[a-z_]+`)
	seen := map[string]bool{}
	for _, p := range panels(t) {
		testkit.Want(t, p.FieldConfig.Defaults.Unit != "" && len(p.Targets) != 0,
			"panel %q: unit %q, %d targets", p.Title, p.FieldConfig.Defaults.Unit, len(p.Targets))
		for _, target := range p.Targets {
			testkit.Want(t, strings.Contains(target.Expr, `mode="$mode"`) && !strings.Contains(target.Expr, "$__interval"),
				"panel %q asks %s", p.Title, target.Expr)
			for _, name := range metric.FindAllString(target.Expr, -1) {
				seen[name] = true
				testkit.Want(t, strings.Contains(page, "\n"+name+"{"), "panel %q asks for %s, which is on no page", p.Title, name)
			}
		}
	}
	for _, name := range []string{"grpc_requests_total", "grpc_responses_total", "grpc_request_duration_seconds_bucket", "grpc_client_calls_total"} {
		testkit.Want(t, seen[name], "no panel asks for %s", name)
	}
}

// Each manifest is YAML whose selectors meet its pods and whose variables are known.
func TestManifests(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(harness.Root(t), "examples", "fibonacci", "kubernetes", "*.yaml"))
	testkit.Need(t, err == nil && len(names) >= 4, "%d manifests, %v", len(names), err)
	told := readme(t)
	for _, name := range names {
		text := testkit.ReadFile(t, name)
		labels, wanted := map[string]bool{}, map[string]bool{}
		for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
			var object manifest
			if decoder.Decode(&object) != nil {
				break
			}
			testkit.Want(t, object.Kind != "" && object.APIVersion != "" && object.Metadata.Name != "",
				"%s: an object without kind, version or name", filepath.Base(name))
			labels[object.Spec.Template.Metadata.Labels["app"]] = true
			if app, ok := object.Spec.Selector["app"].(string); ok {
				wanted[app] = true
			}
			for _, c := range object.Spec.Template.Spec.Containers {
				for _, e := range c.Env {
					testkit.Want(t, strings.Contains(told, "`"+e.Name+"`"),
						"%s sets %s, which README.md does not know", filepath.Base(name), e.Name)
				}
			}
		}
		for app := range wanted {
			testkit.Want(t, labels[app], "%s: a Service selects app %q, which no pod has", filepath.Base(name), app)
		}
	}
}

type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
	Spec struct {
		Selector map[string]any `yaml:"selector"`
		Template struct {
			Metadata struct {
				Labels map[string]string `yaml:"labels"`
			} `yaml:"metadata"`
			Spec struct {
				Containers []struct {
					Env []struct {
						Name string `yaml:"name"`
					} `yaml:"env"`
				} `yaml:"containers"`
			} `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}
