package peers

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/lab/internal/measure"
)

// sample is a report on one closed workload, with the CPU per call of the given
// peers in each round. In the open loop a call takes 100 times that.
func sample(t *testing.T, peers string, rounds ...[]float64) (*report, options) {
	t.Helper()
	o := options{workloads: allWorkloads()[:1], files: 1 << 20}
	var err error
	if o.peers, err = choose(peers, allPeers()); err != nil {
		t.Fatal(err)
	}
	r := &report{Workloads: o.workloads, Peers: o.peers}
	for i, costs := range rounds {
		for p, cost := range costs {
			m := measure.Result{CPUPerCall: cost, PerSecond: 1e6 / cost, Calls: 10, P50: 100 * cost, P99: 200 * cost, After: &measure.Memory{RSSKiB: 10_000, PSSKiB: 9000}}
			for _, in := range o.phases(o.workloads[0]) {
				r.Runs = append(r.Runs, run{Peer: o.peers[p].Name, Workload: "u16", Phase: in, Repeat: i, Result: m})
			}
		}
	}
	return r, o
}

// find returns the check of cabrank with that text before the colon.
func find(t *testing.T, r *report, what, beside string) check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Peer == "cabrank" && c.What == what && c.Beside == beside {
			return c
		}
	}
	t.Fatalf("no check of %s beside %q in %+v", what, beside, r.Checks)
	return check{}
}

// Ratios are formed within a round; the bar is held against their median.
func TestRatios(t *testing.T) {
	r, o := sample(t, "cabrank,haproxy-tcp", []float64{3, 1}, []float64{4, 4}, []float64{3, 2})
	r.summarize(o)
	c := find(t, r, whatCPU, "haproxy-tcp")
	if c.spread != (spread{1.5, 1, 3}) || c.Most != 1.8 || c.Verdict != held {
		t.Errorf("got %+v", c)
	}
	if r.Rows[0].CPU != (spread{3, 3, 4}) || r.Rows[1].CPU != (spread{2, 1, 4}) {
		t.Errorf("got %+v", r.Rows)
	}
	if text := r.table(); !strings.Contains(text, "CPU per call, cabrank / haproxy-tcp: 1.500 (1.000..3.000), bar 1.80: held (3 rounds; a result to quote needs 5)") {
		t.Errorf("got\n%s", text)
	}
	if err := r.verdict(true); err != nil {
		t.Error(err)
	}
}

// Memory is judged by what comes on top of a large program, once it is known
// how large it is.
func TestMemoryBar(t *testing.T) {
	r, o := sample(t, "cabrank,haproxy-tcp", []float64{2, 1})
	r.summarize(o)
	if c := find(t, r, whatRSS, ""); c.Most != 15 || c.Median != 10.24 || c.Verdict != held {
		t.Errorf("got %+v", c)
	}
	for _, kib := range []uint64{9_000_000 / 1024, 10_000_000 / 1024} {
		m := measure.Result{Calls: 1, After: &measure.Memory{RSSKiB: 12_000, PSSKiB: 12_000, FileKiB: kib}}
		r.Runs = append(r.Runs, run{Peer: "cabrank", Workload: "start", Phase: phaseStart, Result: m})
	}
	bar, why := r.memoryBar(15, "cabrank")
	if bar != 12.288+besideStart || why != "12.3 at the start + 6, as 9.5 are the program" {
		t.Errorf("got %v, %q", bar, why)
	}
}

// The best L7 peer is chosen in every round; the copy of bytes is none.
func TestBestL7(t *testing.T) {
	r, o := sample(t, "cabrank,haproxy-tcp,nghttpx,envoy", []float64{3, 1, 10, 20}, []float64{3, 1, 30, 6}, []float64{3, 1, 10, 20})
	r.summarize(o)
	c := find(t, r, whatCPU, best)
	if c.spread != (spread{0.3, 0.3, 0.5}) || strings.Join(c.Best, ",") != "nghttpx,envoy,nghttpx" || c.Verdict != held {
		t.Errorf("got %+v", c)
	}
	if !strings.HasSuffix(c.String(), "best: nghttpx 2x, envoy 1x") {
		t.Errorf("got %v", c)
	}
	if p50 := find(t, r, whatP50, best); p50.Most != 1 || p50.Verdict != held || p50.Median != 0.3 {
		t.Errorf("got %+v", p50)
	}
}

func TestMissedBar(t *testing.T) {
	r, o := sample(t, "cabrank,haproxy-tcp", []float64{3, 1}, []float64{3, 1}, []float64{3, 2})
	r.summarize(o)
	if !strings.Contains(r.table(), "bar 1.80: MISSED") || r.Missed != 1 {
		t.Errorf("got %d,\n%s", r.Missed, r.table())
	}
	if r.verdict(false) != nil || r.verdict(true) == nil {
		t.Error("a missed bar fails with -check and only then")
	}
}

// One failed call makes a row and the bar invalid; the run stays in the report,
// and the other rounds are told.
func TestFailedRun(t *testing.T) {
	r, o := sample(t, "cabrank,haproxy-tcp", []float64{2, 1}, []float64{2, 1}, []float64{2, 1})
	r.Runs[3].Failed, r.Runs[3].Error = 1, "1 calls failed"
	r.summarize(o)
	if r.Rows[1].Valid || r.Rows[1].Runs != 3 || r.Rows[1].Failed != 1 {
		t.Errorf("got %+v", r.Rows)
	}
	c := find(t, r, whatCPU, "haproxy-tcp")
	if c.Verdict != notValid || len(c.Values) != 2 || r.NotValid != 1 {
		t.Errorf("got %+v", c)
	}
	if !strings.Contains(r.table(), "1 NOT VALID") || r.verdict(false) == nil {
		t.Errorf("got\n%s", r.table())
	}
}

// A value that cannot be formed, such as a ratio to nothing, is no value, so
// that the report can always be written.
func TestNothingMeasured(t *testing.T) {
	r, o := sample(t, "cabrank,haproxy-tcp", []float64{2, 1})
	r.Runs[1].CPUPerCall = 0
	r.summarize(o)
	if c := find(t, r, whatCPU, "haproxy-tcp"); c.Verdict != notValid || len(c.Values) != 0 {
		t.Errorf("got %+v", c)
	}
	r.Date = "2026-11-21T00:00:00Z"
	if _, err := r.save(t.TempDir(), noHistograms(t)); err != nil {
		t.Error(err)
	}
}

// A result file is never overwritten, and does not say where the repository was.
func TestSave(t *testing.T) {
	r, o := sample(t, "cabrank,haproxy-tcp", []float64{2, 1})
	r.Date, r.Commit, r.root = "2026-11-21T00:00:00Z", "abc", "/home/me/cabrank"
	r.Peers = []peer{{Name: "haproxy-tcp", Config: "/home/me/cabrank/bench/peers/haproxy-tcp.cfg"}}
	r.summarize(o)
	dir := t.TempDir()
	for _, want := range []string{"2026-11-21-abc.json", "2026-11-21-abc-2.json"} {
		path, err := r.save(dir, noHistograms(t))
		if err != nil || !strings.HasSuffix(path, "/"+want) {
			t.Fatalf("got %q, %v, want %s", path, err, want)
		}
		if log := strings.TrimSuffix(want, "json") + "hlog"; r.Histograms != log {
			t.Errorf("the histograms are said to be in %s, want %s", r.Histograms, log)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var back report
		if err := json.Unmarshal(b, &back); err != nil || len(back.Series) != 2 || string(back.Series[0].Rounds["cpu_us_per_call"][0]) != "2" || back.Checks[0].Median != 2 {
			t.Errorf("read back: %+v, %v", back, err)
		}
		if got := back.Peers[0].Config; got != "bench/peers/haproxy-tcp.cfg" {
			t.Errorf("the configuration is said to be %s", got)
		}
	}
}
