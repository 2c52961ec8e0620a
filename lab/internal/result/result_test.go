package result_test

import (
	"errors"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/traffic"
	"github.com/cabrank/cabrank/lab/test/made"
)

// record is an open load of 100 calls a second for some seconds: each takes 10 ms but
// one in ten, which takes 20 ms. In the seconds that broken names all fail.
func record(seconds int, broken ...int) *traffic.Record {
	r := made.Load(100, seconds, 10*time.Millisecond, broken...)
	r.Opened, r.Warmup = 3, traffic.Warmup{Calls: 120, Failed: 20}
	return r
}

func near(a, b float64) bool { return math.Abs(a-b) <= 0.002*math.Abs(b)+1e-12 }

func TestMeasure(t *testing.T) {
	r := record(20, 3, 4)
	b := result.Block{
		Processes: []result.Process{
			{Role: "generator 1", CPU: time.Second}, {Role: "generator 2", CPU: time.Second},
			{Role: "worker 1", CPU: 3 * time.Second, RSS: 10, PeakRSS: 20}, {Role: "worker 2", RSS: 30},
			{Role: "controller", CPU: time.Hour},
		},
		Events: []result.Event{{At: 5 * time.Second}, {At: 2500 * time.Millisecond}},
	}
	r.Watched = time.Second / 2 // of the callers' CPU
	b.Measure(r, 2)
	want := map[string]float64{
		"p50": 0.01, "p90": 0.01, "mean": 0.011, "max": 0.02, "errors": 0.1, "rate": 90, "connections": 3,
		"cpu_generator": 1.5 / 1900, "cpu_workers": 3.0 / 1900, "cpu_all": 4.5 / 1900,
		"rss_workers": 50, "spread": 0.8, "recovery": 2.5,
	}
	for name, v := range want {
		got, known := b.Figures[name]
		testkit.Want(t, known && near(got, v), "%s is %v (%v), want %v", name, got, known, v)
	}
	for name := range b.Figures {
		if _, wanted := want[name]; !wanted {
			t.Errorf("%s is %v, but cannot be known", name, b.Figures[name])
		}
	}
	testkit.Want(t, reflect.DeepEqual(b.Errors, map[string]int64{"Unavailable": 200}) && b.Workers["worker-1"] == 1620 && !b.Silent,
		"%+v", b)
	testkit.Want(t, math.IsNaN(b.Figure("p99")) && b.Figure("p50") == b.Figures["p50"],
		"an unknown figure has a number, or a known one none")
}

// A given number of calls has a total time, which is endless if they were not all made.
func TestTotal(t *testing.T) {
	r := record(2)
	r.Work = 200
	b := result.Block{Processes: []result.Process{{Role: "gateway", CPU: 3 * time.Second}}}
	b.Measure(r, 1)
	testkit.Want(t, b.Figures["total"] == 2 && near(b.Figures["cpu_gateway"], 0.01) && near(b.Figures["cpu_all"], 0.01),
		"figures: %v", b.Figures)
	r.Work = 300
	b.Measure(r, 1)
	testkit.Want(t, math.IsInf(b.Figure("total"), 1), "100 calls are missing: %v", b.Figure("total"))
	r.Cut = true
	b.Measure(r, 1)
	testkit.Want(t, math.IsNaN(b.Figure("total")), "cut short: %v", b.Figure("total"))
}

// What did not recover, and what did not answer, is above every number.
func TestBeyond(t *testing.T) {
	b := result.Block{Events: []result.Event{{At: time.Second}}, Processes: []result.Process{{Role: "front", CPU: 1}}}
	r := record(3, 0, 1, 2)
	r.Warmup = traffic.Warmup{}
	b.Measure(r, 1)
	for name, want := range map[string]float64{
		"recovery": math.Inf(1), "p99": math.Inf(1), "cpu_front": math.Inf(1), "errors": 1, "rate": 0,
	} {
		testkit.Equal(t, b.Figure(name), want, "%s", name)
	}
	testkit.Want(t, math.IsNaN(b.Figure("spread")) && b.Silent, "%+v", b)
	b.Measure(record(3, 0), 1)
	testkit.Equal(t, b.Figure("recovery"), 0, "nothing failed from the event on: recovery")
}

func TestMarks(t *testing.T) {
	r := record(20)
	if marks := result.Marks(r, 0.5, 0.2); marks != nil {
		t.Errorf("%v", marks)
	}
	want := []string{"the generator's core was 90 % busy, 85 % are allowed", "others used 0.35 cores meanwhile, 0.20 are allowed"}
	if marks := result.Marks(r, 0.9, 0.35); !slices.Equal(marks, want) {
		t.Errorf("%v", marks)
	}
}

// Of the figures that its lag is a tenth of a block knows what they are without; on average
// late, it is not judged.
func TestLateFigures(t *testing.T) {
	for _, tc := range []struct {
		name      string
		lag       time.Duration
		lagging   int // of 10,000 calls, of which one in 10 takes 100 ms and the others 1 ms
		late      map[string]float64
		onAverage bool
	}{
		{name: "in time"},
		{name: "some calls", lag: 300 * time.Microsecond, lagging: 1000, late: map[string]float64{"p50": 0.0007, "p90": 0.001}},
		{name: "the slowest", lag: 30 * time.Millisecond, lagging: 20, late: map[string]float64{"p99": 0.07, "max": 0.1}},
		{name: "all", lag: 2 * time.Millisecond, lagging: 10_000, late: map[string]float64{"p50": 0.001, "p90": 0.001}, onAverage: true},
	} {
		r := record(1)
		r.Calls, r.Lag = latency.NewCalls(), latency.New()
		for i := range 10_000 {
			lag, took := time.Duration(0), time.Millisecond
			if i < tc.lagging {
				lag = tc.lag
			}
			if i%10 == 0 {
				took = 100 * time.Millisecond
			}
			r.Calls.Answer(took + lag)
			r.Lag.Record(lag)
		}
		b := result.Block{Load: "low"}
		b.Measure(r, 1)
		b.Marks = result.Marks(r, 0.1, 0)
		testkit.Want(t, maps.EqualFunc(b.Late, tc.late, near) && b.Judged() != tc.onAverage,
			"%s: late for %v, marks %v", tc.name, b.Late, b.Marks)
		for _, figure := range []string{"p50", "p95"} {
			want, late := tc.late[figure]
			if !late {
				want = b.Figure(figure)
			}
			if got := b.WithoutLag(figure); b.IsLate(figure) != late || !near(got, want) {
				t.Errorf("%s: %s without lag is %v, want %v", tc.name, figure, got, want)
			}
		}
	}
	b := result.Block{Late: map[string]float64{"p50": -0.001}}
	if got := b.WithoutLag("p50"); !math.IsNaN(got) {
		t.Errorf("without a lag above it p50 is %v", got)
	}
}

func run() *result.Run {
	return &result.Run{
		Scenario: "s", Text: "name: s\n", Seed: 1<<53 - 1, Rounds: 10, Began: time.Unix(1795316645, 0).UTC(), Took: time.Minute,
		Arms:   []result.Arm{{Name: "a"}, {Name: "b", About: "the other"}},
		Loads:  []result.Load{{Name: "low", Plan: "open loop", X: 100, Unit: "calls/s", Open: true}},
		Claims: []result.Claim{{Figure: "p99", Load: "low", Base: "a", Other: "b", Margin: 0.05, Primary: true}},
		Blocks: []result.Block{{Arm: "a", Load: "low", Round: 1, Order: 2, Figures: map[string]float64{"p50": 0.01}, Marks: []string{"noise"}}},
	}
}

func TestSavedAndRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	r := run()
	name, err := result.SaveRecord(dir, 7, record(2))
	testkit.Need(t, err == nil && name == "raw/0007.json", "%v %v", name, err)
	r.Blocks[0].Raw = name
	testkit.Must(t, result.Save(dir, r))
	read, err := result.Read(dir)
	testkit.Must(t, err)
	r.Schema = result.Schema
	testkit.Want(t, reflect.DeepEqual(read, r), "read %+v\nwant %+v", read, r)
	record, err := result.ReadRecord(dir, &read.Blocks[0])
	testkit.Want(t, err == nil && record.Due == 200, "%v %v", record, err)
	left, _ := filepath.Glob(filepath.Join(dir, ".*"))
	testkit.Want(t, len(left) == 0, "left behind: %v", left)
}

// A run that does not fit together is neither written nor read, and an old file stays.
func TestRefused(t *testing.T) {
	for _, tc := range []struct {
		spoil func(*result.Run)
		want  string
	}{
		{func(r *result.Run) { r.Scenario = "" }, "the scenario has no name"},
		{func(r *result.Run) { r.Arms[1].Name = "a" }, `arm "a": names are unique and not empty`},
		{func(r *result.Run) { r.Loads[0].Name = "" }, `load "": names are unique and not empty`},
		{func(r *result.Run) { r.Blocks[0].Load = "high" }, `block 1: "a" at "high": no such arm or load`},
		{func(r *result.Run) { r.Blocks[0].Round = 0 }, "block 1: round 0: they count from 1 to 1000 at most"},
		{func(r *result.Run) { r.Blocks[0].Round = math.MaxInt }, "block 1: round 9223372036854775807: they count from 1 to 1000 at most"},
		{func(r *result.Run) { r.Blocks = append(r.Blocks, r.Blocks[0]) }, `block 2: there are two of "a" at "low" in round 1`},
		{func(r *result.Run) { r.Arms = make([]result.Arm, 101) }, "101 arms: at most 100 are read"},
		{func(r *result.Run) { r.Loads = make([]result.Load, 201) }, "201 loads: at most 200 are read"},
		{func(r *result.Run) { r.Claims = make([]result.Claim, 1001) }, "1001 claims: at most 1000 are read"},
		{func(r *result.Run) { r.Blocks[0].Raw = "../x" }, `block 1: raw record "../x": want a file beside run.json`},
		{func(r *result.Run) { r.Blocks[0].Figures["p50"] = math.Inf(1) }, "block 1: p50 is +Inf: want a number from 0 up, or none"},
	} {
		dir := t.TempDir()
		testkit.Must(t, result.Save(dir, run()))
		r := run()
		tc.spoil(r)
		testkit.RefusedBy(t, result.Save(dir, r), "run.json is not written: "+tc.want)
		_, err := result.Read(dir)
		testkit.Want(t, err == nil, "the old one is gone: %v", err)
	}
}

func TestReadRefused(t *testing.T) {
	dir := t.TempDir()
	if _, err := result.Read(filepath.Join(dir, "none.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	path := filepath.Join(dir, result.RunFile)
	for text, want := range map[string]string{
		"{":                 " is no result of a run: unexpected end of JSON input",
		`{"schema":"x"}`:    `: schema "x": want cabrank.lab.run/1`,
		`{"blocks":"none"}`: " is no result of a run: json: cannot unmarshal",
	} {
		testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := result.Read(dir)
		testkit.Refused(t, err, path+want)
	}
	b := result.Block{Raw: "/etc/passwd"}
	_, err := result.ReadRecord(dir, &b)
	testkit.Refused(t, err, "beside run.json")
}

// The figures of the lab have names of their own, and a tail is told from a middle.
func TestFigures(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range result.All() {
		testkit.Want(t, !seen[f.Name] && f.Unit != "" && f.About != "", "%+v", f)
		seen[f.Name] = true
	}
	for name, tail := range map[string]bool{"p50": false, "p90": true, "p99.9": true, "max": true, "mean": false, "errors": false} {
		if f, known := result.Known(name); !known || f.Tail() != tail {
			t.Errorf("%s: %v %v", name, f.Tail(), known)
		}
	}
}

// A perfect queue would have taken half of the time for each call.
func TestAgainst(t *testing.T) {
	for _, c := range []struct {
		seconds int
		tail    bool
	}{{20, false}, {150, true}} {
		r, ideal := record(c.seconds), latency.New()
		for i := range c.seconds * 100 {
			took := 5 * time.Millisecond
			if i%10 == 9 {
				took *= 2
			}
			ideal.Record(took)
		}
		b := result.Block{}
		b.Measure(r, 1)
		b.Against(r, ideal)
		if v := b.Figures["over_ideal_mean"]; !near(v, 2) {
			t.Errorf("the mean is %v times that of the ideal", v)
		}
		if v, known := b.Figures["over_ideal"]; known != c.tail || known && !near(v, 2) {
			t.Errorf("%d calls: p99 is %v times that of the ideal", 100*c.seconds, v)
		}
	}
	var refusing result.Block // who refuses some can be faster than a queue that serves all
	ideal := latency.New()
	ideal.Record(20 * time.Millisecond)
	refusing.Against(record(150, 3), ideal)
	testkit.Want(t, len(refusing.Figures) == 0, "with calls that failed: %v", refusing.Figures)
}
