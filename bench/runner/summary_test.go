package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/bench/measure"
)

func TestMedian(t *testing.T) {
	for want, values := range map[float64][]float64{0: nil, 3: {3}, 2: {9, 1, 2}, 2.5: {4, 1, 2, 3}} {
		if got := median(values); got != want {
			t.Errorf("median of %v: got %v, want %v", values, got, want)
		}
	}
}

func TestChoose(t *testing.T) {
	got, err := choose("u16c50,u16", allWorkloads())
	if err != nil || len(got) != 2 || got[0].Name != "u16c50" || got[1].Name != "u16" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := choose("u17", allWorkloads()); err == nil || !strings.Contains(err.Error(), "u16, ") {
		t.Errorf("an unknown name: got %v", err)
	}
}

// sample is a report of three repeats on one workload; cpu are the costs of
// cabrank and of the TCP copy in each.
func sample(cpu [][2]float64) (*report, options) {
	o := options{workloads: allWorkloads()[:1], peers: allPeers()[:2]}
	r := &report{Workloads: o.workloads}
	for i, pair := range cpu {
		for p, value := range pair {
			m := measure.Result{CPUPerCall: value, Calls: 10}
			r.Runs = append(r.Runs, run{Peer: o.peers[p].Name, Workload: "u16", Repeat: i, Result: m})
		}
	}
	return r, o
}

// Ratios are formed within a repeat; the bar is held against their median.
func TestRatios(t *testing.T) {
	r, o := sample([][2]float64{{3, 1}, {4, 4}, {3, 2}})
	r.summarize(o)
	if len(r.Ratios) != 1 || r.Ratios[0].spread != (spread{1.5, 1, 3}) || r.Ratios[0].Most != 2 {
		t.Errorf("got %+v", r.Ratios)
	}
	if r.Rows[0].CPU != (spread{3, 3, 4}) || r.Rows[1].CPU != (spread{2, 1, 4}) {
		t.Errorf("got %+v", r.Rows)
	}
	if text := r.table(); !strings.Contains(text, "cabrank / haproxy-tcp: 1.50 (1.00..3.00), bar 2.00: held") {
		t.Errorf("got\n%s", text)
	}
	if err := r.verdict(true); err != nil {
		t.Error(err)
	}
}

func TestMissedBar(t *testing.T) {
	r, o := sample([][2]float64{{3, 1}, {3, 1}, {3, 2}})
	r.summarize(o)
	if !strings.Contains(r.table(), "bar 2.00: MISSED") {
		t.Errorf("got\n%s", r.table())
	}
	if r.verdict(false) != nil || r.verdict(true) == nil {
		t.Error("a missed bar fails with -check and only then")
	}
}

// One failed call makes a row invalid, and there is no ratio to it; the run
// stays in the report.
func TestFailedRun(t *testing.T) {
	r, o := sample([][2]float64{{2, 1}, {2, 1}, {2, 1}})
	r.Runs[3].Failed, r.Runs[3].Error = 1, "1 calls failed"
	r.summarize(o)
	if r.Rows[1].Valid || r.Rows[1].Runs != 3 || r.Rows[1].Failed != 1 || len(r.Ratios) != 0 {
		t.Errorf("got %+v, %+v", r.Rows, r.Ratios)
	}
	if !strings.Contains(r.table(), "1 NOT VALID") || r.verdict(false) == nil {
		t.Errorf("got\n%s", r.table())
	}
}

// A result file is never overwritten, and does not say where the repository was.
func TestSave(t *testing.T) {
	r, o := sample([][2]float64{{2, 1}})
	r.Date, r.Commit, r.root = "2026-11-21T00:00:00Z", "abc", "/home/me/cabrank"
	r.Peers = []peer{{Name: "haproxy-tcp", Config: "/home/me/cabrank/bench/peers/haproxy-tcp.cfg"}}
	r.summarize(o)
	dir := t.TempDir()
	for _, want := range []string{"2026-11-21-abc.json", "2026-11-21-abc-2.json"} {
		path, err := r.save(dir)
		if err != nil || !strings.HasSuffix(path, "/"+want) {
			t.Fatalf("got %q, %v, want %s", path, err, want)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var back report
		if err := json.Unmarshal(b, &back); err != nil || len(back.Runs) != 2 || back.Runs[0].CPUPerCall != 2 || back.Ratios[0].Median != 2 {
			t.Errorf("read back: %+v, %v", back, err)
		}
		if got := back.Peers[0].Config; got != "bench/peers/haproxy-tcp.cfg" {
			t.Errorf("the configuration is said to be %s", got)
		}
	}
}

func TestPeerCommands(t *testing.T) {
	at := addresses{listen: "127.0.0.1:1", backends: []string{"127.0.0.1:2", "127.0.0.1:3"}}
	for name, want := range map[string]string{
		"cabrank":     "b run --listen 127.0.0.1:1 --upstream 127.0.0.1:2,127.0.0.1:3 --slots 1000",
		"haproxy-tcp": "b -db -f haproxy-tcp.cfg",
		"nghttpx":     "b --conf=nghttpx.conf --frontend=127.0.0.1,1;no-tls --backend=127.0.0.1,2;/;proto=h2 --backend=127.0.0.1,3;/;proto=h2",
	} {
		p, err := choose(name, allPeers())
		if err != nil {
			t.Fatal(err)
		}
		p[0].binary = "b"
		if got := strings.Join(p[0].command(at), " "); !strings.HasPrefix(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if env := strings.Join(at.environment(), " "); !strings.Contains(env, "GOMAXPROCS=1") || !strings.Contains(env, "BENCH_BACKEND_2=127.0.0.1:3") {
		t.Errorf("got %s", env)
	}
}

func TestForeignAndTail(t *testing.T) {
	m := measure.Result{Seconds: 2, CPU: 1, CoreBusy: []float64{1.5}}
	if got := foreign(m, 0); got != 0.25 {
		t.Errorf("foreign share: got %v, want 0.25", got)
	}
	if foreign(m, 7) != 0 || foreign(measure.Result{CoreBusy: []float64{1}}, 0) != 0 {
		t.Error("a core that is not there has no foreign share")
	}
	var end tail
	for range 3 {
		end.Write([]byte(strings.Repeat("x", tailBytes-1) + "y"))
	}
	if got := end.String(); len(got) != tailBytes || !strings.HasSuffix(got, "y") {
		t.Errorf("tail keeps %d bytes", len(got))
	}
}
