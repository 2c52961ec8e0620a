//go:build real || soak

package languages_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// grufLayout is gruf-relay.yml as its README has it, with ports of the test.
const grufLayout = `log:
  level: info
  format: json
server:
  host: 127.0.0.1
  port: %d
workers:
  count: 2
  start_port: %d
  metrics_path: /worker-metrics
  pool_size: 3
health_check:
  interval: 1s
  timeout: 3s
probes:
  enabled: true
  port: %d
metrics:
  enabled: true
  port: %d
  path: /all-metrics
  interval: 5s
`

// grufApplication is a running relay in the layout of gruf-relay's example.
type grufApplication struct {
	*harness.Cabrank

	first int // of its ports: callers, probes, metrics; from 10 on the workers
	dir   string
}

// startGruf starts cabrank as gruf-relay: by that name, without arguments, where
// gruf-relay.yml is, with a bundle on the PATH.
func startGruf(t *testing.T, environ ...string) *grufApplication {
	t.Helper()
	a := &grufApplication{first: testkit.FreePorts(t, 120), dir: harness.ShortTempDir(t)}
	worker := filepath.Join(harness.Root(t), "test", "real", "languages", "testdata", "gruf_worker.rb")
	for name, text := range map[string]string{
		"gruf-relay.yml": fmt.Sprintf(grufLayout, a.first, a.first+10, a.first+1, 1),
		"bundle":         "#!/bin/sh\nexec ruby " + worker + " \"$@\"\n",
	} {
		testkit.Must(t, os.WriteFile(filepath.Join(a.dir, name), []byte(text), 0o700))
	}
	testkit.Must(t, os.Symlink(harness.CabrankBinary(t), filepath.Join(a.dir, "gruf-relay")))
	env := append([]string{
		"PATH=" + a.dir + ":" + os.Getenv("PATH"), "METRICS_DIR=" + filepath.Join(a.dir, "metrics"),
		fmt.Sprintf("METRICS_PORT=%d", a.first+2), // stands above the file
		"METRICS_INTERVAL=200ms", "CABRANK_CONTROL=off",
	}, environ...)
	p := harness.StartProcess(t, env, "/bin/sh", "-c", `cd "$0" && exec ./gruf-relay`, a.dir)
	a.Cabrank = &harness.Cabrank{Process: p, Addr: a.at(0), ProbesAddr: a.at(1), MetricsAddr: a.at(2), Ended: true}
	a.WaitReady(harness.LangBound)
	return a
}

func (a *grufApplication) at(n int) string { return fmt.Sprintf("127.0.0.1:%d", a.first+n) }

// page is the metrics page as Prometheus gets it.
func (a *grufApplication) page() (text, kind string) {
	a.T.Helper()
	defer http.DefaultClient.CloseIdleConnections()
	answer, err := http.Get("http://" + a.MetricsAddr + "/all-metrics")
	testkit.Must(a.T, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	testkit.Need(a.T, err == nil && answer.StatusCode == http.StatusOK, "%v %v", answer.Status, err)
	return string(body), answer.Header.Get("Content-Type")
}

func (a *grufApplication) waitPage(line string) {
	a.T.Helper()
	a.Wait(harness.Patience, line, func() bool {
		text, _ := a.page()
		return strings.Contains(text, "\n"+line+"\n")
	})
}

// The layout of gruf-relay's example, its file, its variables, its bundle and its
// application with an exporter, has the same ports, probes, keys of the log, metrics
// page and end as before.
func TestLayoutOfGrufRelay(t *testing.T) {
	a := startGruf(t)
	harness.WantProbes(t, a.Cabrank, map[string]int{"startup": 200, "readiness": 200, "liveness": 200, "other": 404})
	for n := range 2 {
		told := fmt.Sprintf("gruf on 127.0.0.1:%d, 9 threads, metrics at %d/worker-metrics", a.first+10+n, a.first+110+n)
		a.Wait(harness.Patience, told, func() bool { return strings.Contains(a.Log()+a.Output(), told) })
	}
	const labels = `{grpc_client_method="cpu",grpc_type="request_response"}`
	call := func(calls int) {
		t.Helper()
		failed := harness.CallCPU(t, harness.Dial(t, a.Addr), calls, 4)
		testkit.Want(t, len(failed) == 0, "%v", failed)
	}
	call(40)
	a.waitPage("grpc_server_requests_total" + labels + " 40")
	a.waitPage(`grpc_server_request_duration_seconds_bucket{grpc_client_method="cpu",grpc_type="request_response",le="+Inf"} 40`)
	_, kind := a.page()
	testkit.Want(t, strings.HasPrefix(kind, "text/plain; version=0.0.4; charset=utf-8"), "the page is %s", kind)
	a.Wait(harness.Patience, "the gauges of two pools", func() bool {
		text, _ := a.page()
		return strings.Count(text, "\ngrpc_server_pool_workers_total{") == 2
	})

	killed := a.rubies()[0]
	a.KillPID(killed)
	a.Wait(harness.LangBound, "a new worker", func() bool {
		now := a.rubies()
		return len(now) == 2 && !slices.Contains(now, killed)
	})
	call(10) // none is lost, what was shown stays
	a.waitPage("grpc_server_requests_total" + labels + " 50")

	a.StopBy(syscall.SIGTERM)
	a.wantKeys()
	for _, n := range []int{0, 1, 2, 10, 11, 110, 111} {
		l, err := net.Listen("tcp", a.at(n))
		testkit.Must(t, err)
		l.Close()
	}
}

// A worker whose page never comes holds up no stop, and no call.
func TestStopWhileAPageIsWaitedFor(t *testing.T) {
	a := startGruf(t, "METRICS_HANG=1")
	a.Wait(harness.Patience, "a page to be asked for", func() bool { return strings.Contains(a.Log()+a.Output(), "never answered") })
	failed := harness.CallCPU(t, harness.Dial(t, a.Addr), 10, 2)
	testkit.Want(t, len(failed) == 0, "%v", failed)
	a.StopWithin(15 * time.Second) // not the drain timeout
	a.WaitNoneLeft(harness.Patience)
}

// rubies are the pids of the workers.
func (a *grufApplication) rubies() (all []int) {
	for _, pid := range a.Family() {
		words, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.HasPrefix(string(words), "ruby\x00") {
			all = append(all, pid)
		}
	}
	return all
}

// wantKeys holds that each line is JSON with the keys of gruf-relay's log, and names
// workers and addresses as texts.
func (a *grufApplication) wantKeys() {
	a.T.Helper()
	seen := map[string]int{}
	for line := range strings.Lines(a.Log()) {
		var keys map[string]any
		if err := json.Unmarshal([]byte(line), &keys); err != nil {
			a.T.Errorf("%v: %s", err, line)
			continue
		}
		for _, key := range []string{"time", "level", "msg", "worker", "addr", "command"} {
			value, there := keys[key]
			_, text := value.(string)
			testkit.Want(a.T, !there || text, "%s is no text: %s", key, line)
			if there {
				seen[key]++
			}
		}
	}
	for _, key := range []string{"time", "level", "msg", "worker", "addr"} {
		testkit.Want(a.T, seen[key] != 0, "no line has the key %s", key)
	}
}

// Where gruf-relay ran, by its name, its file and its variables and without any
// argument, cabrank does in its place, with the default command of the workers.
func TestInPlaceOfGrufRelay(t *testing.T) {
	port := testkit.FreePorts(t, 120)
	file := fmt.Sprintf("server: {host: 127.0.0.1, port: %d}\nworkers: {count: 2, start_port: %d}\nprobes: {port: %d}\nmetrics: {enabled: false}\n",
		port, port+10, port+1)
	for name, environ := range map[string]string{"gruf-relay.yml": "", "other.yml": "CONFIG_PATH=other.yml"} {
		t.Run(name, func(t *testing.T) {
			dir := harness.ShortTempDir(t)
			write := func(name, text string, mode os.FileMode) {
				t.Helper()
				testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), mode))
			}
			write(name, file, 0o600)
			write("bundle", "#!/bin/sh\necho \"bundle $*\" >&2\nexec "+strings.Join(harness.FaultWorker(t), " ")+"\n", 0o700)
			testkit.Must(t, os.Symlink(harness.CabrankBinary(t), filepath.Join(dir, "gruf-relay")))
			env := []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "CABRANK_CONTROL=off", environ}
			p := harness.StartProcess(t, env, "/bin/sh", "-c", `cd "$0" && exec ./gruf-relay`, dir)
			c := &harness.Cabrank{Process: p, Addr: fmt.Sprintf("127.0.0.1:%d", port), ProbesAddr: fmt.Sprintf("127.0.0.1:%d", port+1), Ended: true}
			c.WaitReady(harness.Patience)
			c.WaitWorkers(2)
			harness.CallIo(t.Context(), harness.Dial(t, c.Addr), "1", 0).WantOK(t)
			testkit.Says(t, p.Output(), "bundle exec gruf --host 127.0.0.1:")
			p.StopBy(syscall.SIGTERM)
		})
	}
}
