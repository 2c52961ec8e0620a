package peers

import (
	"testing"

	"github.com/cabrank/cabrank/lab/internal/measure"
)

func TestMedian(t *testing.T) {
	for want, values := range map[float64][]float64{0: nil, 3: {3}, 2: {9, 1, 2}, 2.5: {4, 1, 2, 3}} {
		if got := median(values); got != want {
			t.Errorf("median of %v: got %v, want %v", values, got, want)
		}
	}
}

func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		check
		rounds int
		want   string
	}{
		"below":      {check{Values: []float64{1, 2, 9}, Most: 2.5}, 3, held},
		"at the bar": {check{Values: []float64{2}, Most: 2}, 1, held},
		"above":      {check{Values: []float64{1, 3, 3}, Most: 2.5}, 3, missed},
		"a gap":      {check{Values: []float64{1, 2}, Most: 2.5}, 3, notValid},
		"nothing":    {check{Most: 2.5}, 0, notValid},
		"enough":     {check{Values: []float64{4, 5, 6}, Least: 5}, 3, held},
		"not enough": {check{Values: []float64{4, 4, 6}, Least: 5}, 3, missed},
		"too few":    {check{Values: []float64{6}, Least: 5}, 2, notValid},
		"no bar":     {check{Values: []float64{1}}, 1, ""},
	} {
		c := tc.check
		if c.judge(tc.rounds); c.Verdict != tc.want {
			t.Errorf("%s: got %q, want %q", name, c.Verdict, tc.want)
		}
	}
}

// Units of what is no ratio: milliseconds, KiB per connection, MB of 10^6.
func TestValues(t *testing.T) {
	ours := run{Result: measure.Result{P50: 250, Conns: 4, Before: &measure.Memory{RSSKiB: 1000, PSSKiB: 900}, After: &measure.Memory{RSSKiB: 1028, PSSKiB: 912}}}
	theirs := run{Result: measure.Result{P50: 150}}
	for what, want := range map[string]float64{whatAdded: 0.1, whatPerConn: 7, whatRSS: 1.052672} {
		if got := value(what, ours, theirs); got != want {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	if got := ours.perConnectionPSS(); got != 3 {
		t.Errorf("PSS per connection: got %v, want 3", got)
	}
}

// The bars are those that the project has set itself.
func TestBars(t *testing.T) {
	want := map[string]float64{
		"u16 CPU per call haproxy-tcp": 1.8, "u16 CPU per call best L7": 0.4,
		"u16c50 CPU per call haproxy-tcp": 1, "u16c50 CPU per call best L7": 0.85,
		"u10k CPU per call haproxy-tcp": 1.5, "u10k CPU per call best L7": 0.8,
		"s100 CPU per call haproxy-tcp": 1.6, "s100 CPU per call best L7": 0.5,
		"r4k added p50 direct": 0.15, "idle1k RSS per idle connection ": 8, "idle10k RSS per idle connection ": 8,
		"shards CPU per call cabrank-1shard": 1.15,
		"raw calls per second ":              400_000, "raw calls per second of the open loop ": 60_000, "raw send lag p99 ": 1000,
		"q70 p99 over that of the ideal queue ": 1.05, "q70 calls that overlap at a worker ": none, "q70refuse p99 over that of the ideal queue ": 1.1,
	}
	for _, overload := range []string{"q140", "q140skip", "q140refuse"} {
		want[overload+" share of calls not answered in time "] = 0.4
		want[overload+" calls begun after their deadline "] = none
	}
	for _, w := range allWorkloads() {
		for _, b := range w.Bars {
			most, ok := want[w.Name+" "+b.What+" "+b.Beside]
			switch b.What {
			case whatP50, whatP99:
				most, ok = 1, true
			case whatRSS:
				most, ok = 15, true
			}
			if !ok || most != max(b.Most, b.Least) || b.Most > 0 && b.Least > 0 {
				t.Errorf("%s: bar %+v, want %v", w.Name, b, most)
			}
			delete(want, w.Name+" "+b.What+" "+b.Beside)
		}
	}
	if len(want) > 0 {
		t.Errorf("bars that no workload has: %v", want)
	}
}
