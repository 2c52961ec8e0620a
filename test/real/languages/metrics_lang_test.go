//go:build real || soak

package languages_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// counted is a worker that counts its calls by the client library of its language.
type counted struct {
	command []string
	env     []string
	calls   string // its counter of calls
	seconds string // its histogram of them
}

// countedWorkers have a folder for what the processes of one worker share, which the
// hook empties: a process would go on with the numbers of the one before.
func countedWorkers(t *testing.T, shared string) map[string]counted {
	t.Helper()
	scripts := filepath.Join(harness.Root(t), "test", "real", "languages", "testdata")
	python := harness.Built(t, filepath.Join(harness.Root(t), ".deps", "fibonacci", "bin", "python3"), "scripts/install-deps.sh workers")
	return map[string]counted{
		"python": {
			command: []string{python, filepath.Join(scripts, "counted_worker.py")},
			env: []string{
				"CABRANK_WORKERS_ENV={PROMETHEUS_MULTIPROC_DIR: '" + shared + "/{worker}'}",
				`CABRANK_HOOKS={before_start: ["sh", "-c", "rm -rf \"$0\" && mkdir -p \"$0\"", "` + shared + `/{worker}"]}`,
				"PYTHONDONTWRITEBYTECODE=1",
			},
			calls: "work_calls_total", seconds: "work_seconds",
		},
		"ruby": {
			command: []string{"ruby", filepath.Join(scripts, "gruf_worker.rb"), "exec", "gruf", "--host", "{addr}"},
			env:     []string{"METRICS_DIR=" + shared},
			calls:   "grpc_server_requests_total", seconds: "grpc_server_request_duration_seconds",
		},
		"node": {
			command: []string{"node", filepath.Join(scripts, "counted_worker.js")},
			calls:   "work_calls_total", seconds: "work_seconds",
		},
	}
}

// Counters of three client libraries fall never and lose nothing while workers are
// replaced under load, by rolls and by recycling. By kill -9 the calls are lost that were
// on no page yet.
// promtool finds nothing on the page that it does not find on those of the workers.
func TestCountersOfLanguages(t *testing.T) {
	for lang, w := range countedWorkers(t, harness.ShortTempDir(t)) {
		t.Run(lang, func(t *testing.T) {
			m := startCounted(t, w)
			load := m.load()
			m.watch("a roll", func() error { return m.operator.Run(harness.ChangeLimit, "restart") })
			m.watch("recycling", func() error { return m.retired(t.Context(), "calls", 2) })
			failed, calls := load.Stop()
			testkit.Want(t, len(failed) == 0, "%v", failed)
			m.await(float64(calls))
			load = m.load()
			m.watch("kill -9", m.kill)
			failed, more := load.Stop()
			m.awaitMost(calls, more, failed)
			m.check(t)
			m.Stop()
		})
	}
}

// merged is a running cabrank whose workers count.
type merged struct {
	*harness.Cabrank

	counted  counted
	operator *harness.Operator
	most     map[string]float64 // of each counter
}

func startCounted(t *testing.T, w counted) *merged {
	t.Helper()
	socket := filepath.Join(harness.ShortTempDir(t), "control")
	env := slices.Concat(w.env, []string{"METRICS_INTERVAL=200ms", "CABRANK_CONTROL=" + socket, "CABRANK_RECYCLE_CALLS=300"})
	port := testkit.FreePorts(t, 120) // an exporter that finds its port taken is none, and no worker ends for it
	args := append([]string{"--start-port", strconv.Itoa(port), "--workers", "3", "--slots", "4", "--min-ready", "2", "--"}, w.command...)
	m := &merged{Cabrank: harness.StartCabrankEnv(t, env, args...), counted: w, operator: harness.NewOperator(t, socket), most: map[string]float64{}}
	m.WaitReady(harness.LangBound)
	return m
}

func (m *merged) load() *harness.Loop {
	return harness.StartLoop(m.T, 6, harness.Working(workpb.NewWorkClient(harness.Dial(m.T, m.Addr)), harness.CallCPUOnce))
}

// watch looks at the page until something has been done, and once more.
func (m *merged) watch(what string, do func() error) {
	m.T.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	m.Wait(harness.ChangeLimit, what, func() bool {
		m.look()
		select {
		case err := <-done:
			testkit.Want(m.T, err == nil, "%v", err)
			return true
		default:
			return false
		}
	})
	m.look()
}

// look holds that no counter of the workers has fallen.
func (m *merged) look() {
	m.T.Helper()
	samples := m.Samples()
	for _, name := range []string{m.counted.calls, m.counted.seconds, "process_cpu_user_seconds_total", "nodejs_gc_duration_seconds"} {
		for _, s := range samples[name] {
			series := name + fmt.Sprint(s.Labels)
			testkit.Need(m.T, s.Value >= m.most[series], "%s has fallen from %v to %v", series, m.most[series], s.Value)
			m.most[series] = s.Value
		}
	}
}

// await waits until the page has so many calls, in the counter and in the histogram. On
// a machine so busy that pages came late, a process may have ended without its last one,
// which has half a second: what it counted since the one before is lost.
func (m *merged) await(calls float64) {
	m.T.Helper()
	counter, histogram := 0.0, 0.0
	for wait := time.Now().Add(harness.Patience); time.Now().Before(wait); {
		m.look()
		counter, histogram = m.Metric(m.counted.calls), m.Metric(m.counted.seconds)
		if counter == calls && histogram == calls {
			return
		}
		if counter > calls {
			break
		}
	}
	late := m.Metric("cabrank_worker_pages_total", "result", "late")
	if late > 0 && counter == histogram && counter <= calls && counter >= calls*0.95 {
		m.T.Logf("%v of %v calls on the page, %v pages came late", counter, calls, late)
		return
	}
	m.T.Fatalf("%v calls on the page, %v in the histogram, want %v; %v pages came late", counter, histogram, calls, late)
}

// awaitMost waits until the page has most of the calls during which a worker was killed,
// behind those that were there, and holds that it has no more.
func (m *merged) awaitMost(before, more int, failed map[string]int) {
	m.T.Helper()
	m.Wait(harness.Patience, fmt.Sprintf("most of %d calls behind %d, of which failed %v", more, before, failed), func() bool {
		m.look()
		return m.Metric(m.counted.calls) > float64(before)+float64(more)/2
	})
	for _, name := range []string{m.counted.calls, m.counted.seconds} {
		now := m.Metric(name)
		testkit.Want(m.T, now <= float64(before+more), "%s is %v after %d calls", name, now, before+more)
	}
}

func (m *merged) retired(ctx context.Context, reason string, n float64) error {
	for ctx.Err() == nil {
		page, err := get("http://" + m.MetricsAddr + "/metrics")
		if err != nil {
			return err
		}
		if found := strings.Count(page, `reason="`+reason+`"`); found >= int(n) {
			return nil
		}
	}
	return ctx.Err()
}

// kill kills a worker and waits for the one in its place.
func (m *merged) kill() error {
	s, err := m.operator.Status()
	if err != nil {
		return err
	}
	killed := s.Workers[0].PID
	if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
		return err
	}
	return m.operator.Await(harness.LangBound, "a new worker", func(s *harness.OperatorStatus) bool {
		return s.Ready == 3 && s.Workers[0].PID != killed
	})
}

// check has promtool look at the page, and at that of a worker.
func (m *merged) check(t *testing.T) {
	t.Helper()
	var own string
	m.Wait(harness.LangBound, "the page of a worker", func() bool {
		s, err := m.operator.Status()
		testkit.Must(t, err)
		_, port, _ := strings.Cut(s.Workers[0].Address, ":")
		number, _ := strconv.Atoi(port)
		own, err = get(fmt.Sprintf("http://127.0.0.1:%d/metrics", number+100))
		return err == nil // else it is being replaced
	})
	known := promtool(t, own)
	for _, finding := range promtool(t, m.MetricsText()) {
		testkit.Want(t, slices.Contains(known, finding), "promtool: %s", finding)
	}
}

func promtool(t *testing.T, page string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
	cmd.Stdin = strings.NewReader(page)
	out, err := cmd.CombinedOutput()
	testkit.Need(t, err == nil || len(out) != 0, "%v", err)
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func get(url string) (string, error) {
	client := http.Client{Timeout: harness.Patience}
	defer client.CloseIdleConnections()
	answer, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	return string(page), err
}

// A real Prometheus sees neither a spike nor a fall of the rate while workers with
// hundreds of calls behind each are rolled and killed.
func TestPrometheusSeesNoSpike(t *testing.T) {
	m := startCounted(t, countedWorkers(t, harness.ShortTempDir(t))["ruby"])
	conn := harness.Dial(t, m.Addr)
	failed := harness.CallCPU(t, conn, 1000, 8)
	testkit.Want(t, len(failed) == 0, "%v", failed)
	m.await(1000) // a worker that counted twice, or from zero, would be seen
	server := harness.StartPrometheus(t, m.MetricsAddr)
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
			testkit.Must(t, err)
		default:
		}
	}
	// In the first window the calls begin.
	rates := server.Values(t, "sum(rate("+m.counted.calls+"[2s]))", began.Add(3*time.Second), time.Now())
	testkit.Need(t, len(rates) >= 10, "%d rates", len(rates))
	for _, rate := range rates {
		if rate < 0 || rate > 4*perSecond { // a worker that counted twice makes it more
			t.Errorf("a rate of %v calls per second, where there are %v: %v", rate, float64(calls)/time.Since(began).Seconds(), rates)
			break
		}
	}
	resets := server.Values(t, "sum(resets("+m.counted.calls+"[5m])) + sum(resets("+m.counted.seconds+"_count[5m]))", time.Now(), time.Now())
	testkit.Want(t, len(resets) == 1 && resets[0] == 0, "resets: %v", resets)
	t.Logf("%d calls, rates %.0f", calls, rates)
	m.Stop()
}
