//go:build !race

package whatif

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/lab/internal/goal"
	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// exponential has the quantiles of an exponential time in it.
func exponential(mean time.Duration) *latency.Histogram {
	const n = 50_000
	h := latency.New()
	for i := range n {
		h.Record(time.Duration(-math.Log1p(-(float64(i)+0.5)/n) * float64(mean)))
	}
	return h
}

func constant(d time.Duration) *latency.Histogram {
	h := latency.New()
	h.Record(d)
	return h
}

// ask answers a question on one number of workers with one slot each.
func ask(t *testing.T, q Question) *Answer {
	t.Helper()
	if q.Slots == nil {
		q.Slots = []int{1}
	}
	if q.Queue == (Queue{}) {
		q.Queue = Queue{Length: 1 << 20, Timeout: time.Hour}
	}
	a, err := q.Ask(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *Answer) cell(t *testing.T, slots, workers int, p Policy) Cell {
	t.Helper()
	for _, c := range a.Cells {
		if c.Slots == slots && c.Workers == workers && c.Policy == p {
			return c
		}
	}
	t.Fatalf("no cell of %d workers with %d slots, %s", workers, slots, p)
	return Cell{}
}

func TestParseNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"4": "4", "1..3": "1 2 3", "5, 1": "1 5", "1,2,4..6,5": "1 2 4 5 6",
		"": "", "0": "", "3..1": "", "x": "", "1..": "", "1-3": "", "1..99999999": "",
	} {
		all, err := ParseNumbers(text)
		var words []string
		for _, n := range all {
			words = append(words, list([]int{n}))
		}
		if got := strings.Join(words, " "); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	if got := list([]int{1, 2, 4, 5, 6, 9}); got != "1,2,4..6,9" {
		t.Error(got)
	}
}

// What cannot be asked is told in a line.
func TestWhatCannotBeAsked(t *testing.T) {
	t.Parallel()
	good := Question{Rate: 100, Slots: []int{1}, Calibrations: []Calibration{{Times: constant(time.Millisecond), Echo: time.Millisecond / 2}}}
	for want, change := range map[string]func(*Question){
		"a rate of 0":               func(q *Question) { q.Rate = 0 },
		"a rate of 1e+09":           func(q *Question) { q.Rate = 1e9 },
		"a timeout of -1s":          func(q *Question) { q.Timeout = -time.Second },
		"a timeout of 100µs is":     func(q *Question) { q.Timeout = 100 * time.Microsecond },
		"5 calls of each cell":      func(q *Question) { q.Calls = 5 },
		"0 slots":                   func(q *Question) { q.Slots = []int{0} },
		"30 workers of 1000 slots":  func(q *Question) { q.Slots, q.Workers = []int{1000}, []int{30} },
		"2000 workers of 1 slots":   func(q *Question) { q.Workers = []int{2000} },
		"calls in all are":          func(q *Question) { q.Workers, q.Calls = slices.Repeat([]int{1}, 100), 5_000_000 },
		"workers with 1 slots":      func(q *Question) { q.Calibrations[0].Slots = 5 },
		"there are no service time": func(q *Question) { q.Calibrations[0].Times = latency.New() },
	} {
		q := good
		q.Calibrations = slices.Clone(good.Calibrations)
		change(&q)
		if _, err := q.Ask(t.Context(), nil); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := good.Ask(ended, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The smallest number of workers is found between those that were tried first, and the
// same question has the same answer.
func TestSmallestNumber(t *testing.T) {
	t.Parallel()
	thresholds, err := goal.Parse([]string{"p99<100ms"})
	if err != nil {
		t.Fatal(err)
	}
	q := Question{
		Rate: 1500, Slots: []int{1}, Seed: 3, Calls: leastCalls, Thresholds: thresholds,
		Calibrations: []Calibration{{Times: exponential(10 * time.Millisecond)}},
	}
	cells := 0
	a, err := func() (*Answer, error) {
		q.Queue = Queue{Length: 1000, Timeout: 30 * time.Second}
		return q.Ask(t.Context(), func(p Progress) { cells = p.All })
	}()
	if err != nil || cells != len(a.Cells) || !a.Holds() {
		t.Fatalf("%d cells told, %d there, %v", cells, len(a.Cells), err)
	}
	if !slices.Equal(a.Thresholds, []string{"p99<100ms"}) {
		t.Error(a.Thresholds)
	}
	for _, s := range a.Sizes {
		if s.Workers == 0 {
			continue
		}
		if c := a.cell(t, 1, s.Workers, s.Policy); !c.holds() {
			t.Errorf("%+v does not hold", s)
		}
		if c := a.cell(t, 1, s.Workers-1, s.Policy); c.holds() {
			t.Errorf("%+v: one less holds, too", s)
		}
	}
	first, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	again := ask(t, q)
	second, err := json.Marshal(again)
	if err != nil || string(first) != string(second) {
		t.Errorf("another answer at the second time, %v", err)
	}
}

// Under a deadline Cabrank refuses, and others let calls run into it.
func TestOverload(t *testing.T) {
	t.Parallel()
	a := ask(t, Question{
		Rate: 140, Timeout: 200 * time.Millisecond, Workers: []int{1}, Seed: 1, Calls: leastCalls,
		Calibrations: []Calibration{{Times: exponential(10 * time.Millisecond)}},
	})
	c, r := a.cell(t, 1, 1, Cabrank), a.cell(t, 1, 1, RoundRobin)
	if c.Overload || c.Failed < 0.28 || c.Failed > 0.45 || c.Shed <= 0 || r.Failed < c.Failed+0.2 || c.Busy < 0.95 {
		t.Errorf("cabrank %.3f failed, %.3f shed, busy %.3f; round robin %.3f failed", c.Failed, c.Shed, c.Busy, r.Failed)
	}
	none := ask(t, Question{Rate: 140, Workers: []int{1}, Calls: leastCalls, Calibrations: a.Calibrations})
	for _, cell := range none.Cells {
		if !cell.Overload || cell.Due != 0 {
			t.Errorf("%+v", cell)
		}
	}
}

func TestReadTimes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"12.5\n# a note\n\n 20ms \r\n0.1s":   "12.5ms 20ms 100ms",
		"":                                   "f: it is empty",
		"\n":                                 "f: it is empty",
		"# nothing\n":                        "f: there is no time in it",
		"1\nx\n":                             `f: line 2: "x" is no service time: want one such as 12.5ms or 12.5 (milliseconds), at most 1h0m0s`,
		"-1":                                 `f: line 1: "-1" is no`,
		"NaN":                                `f: line 1: "NaN" is no`,
		"2h":                                 `f: line 1: "2h" is no`,
		"{}":                                 "f: want load.json or what-if.json of cabrank lab",
		"{":                                  "f: unexpected end of JSON input",
		`{"schema":"cabrank.lab.what-if/1"}`: "f: there are no calibrations in it",
		`{"schema":"cabrank.lab.what-if/1","calibrations":[{"slots":1}]}`:                                "f: a calibration has no times",
		`{"schema":"cabrank.lab.what-if/1","calibrations":[{}` + strings.Repeat(",{}", mostSlots) + "]}": "f: 1001 calibrations, at most 1000 are read",
		"#[x]\n1,2,3": "f: histogram log: line 2: 3 fields",
	} {
		all, err := ReadTimes("f", []byte(text), 0)
		if err != nil {
			if !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%q: %v, want %s", text, err, want)
			}
			continue
		}
		var got []string
		for d := range all[0].Times.All() {
			got = append(got, d.Round(100*time.Microsecond).String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %s", text, got, want)
		}
	}
}

// What the lab itself has written is read, but not latencies under load.
func TestReadOwnFiles(t *testing.T) {
	t.Parallel()
	a := ask(t, Question{Rate: 10, Workers: []int{1}, Calls: leastCalls, Calibrations: []Calibration{{Slots: 1, Source: "s", Times: constant(10 * time.Millisecond), Echo: time.Millisecond}}})
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	all, err := ReadTimes("f", text, time.Hour)
	if err != nil || len(all) != 1 || all[0].Slots != 1 || all[0].Echo != time.Millisecond || all[0].Service().Mean().Round(time.Millisecond) != 9*time.Millisecond {
		t.Errorf("%+v, %v", all, err)
	}
	record := &traffic.Record{
		Loop: traffic.ClosedLoop, Due: 1, Calls: latency.NewCalls(), Unsent: traffic.Unsent{Ages: latency.New()},
		Open: latency.New(), First: latency.New(), Lag: latency.New(), Workers: traffic.Shares{},
	}
	record.Calls.Answer(10 * time.Millisecond)
	for loop, want := range map[traffic.Loop]string{traffic.ClosedLoop: "", traffic.OpenLoop: "it is of an open loop"} {
		record.Loop = loop
		text, err := json.Marshal(file{Schema: "cabrank.lab.load/1", Record: record})
		if err != nil {
			t.Fatal(err)
		}
		all, err := ReadTimes("f", text, time.Millisecond)
		if want == "" && (err != nil || all[0].Service().Mean().Round(time.Millisecond) != 9*time.Millisecond || all[0].Slots != 0) {
			t.Errorf("%s: %+v, %v", loop, all, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", loop, err)
		}
	}
	var log strings.Builder
	w, err := latency.NewLogWriter(&log, time.Unix(0, 0))
	if err == nil {
		err = w.Write(latency.Interval{Tag: "answered", Length: time.Second, Latencies: record.Calls.Answered})
	}
	if err != nil {
		t.Fatal(err)
	}
	if all, err := ReadTimes("f", []byte(log.String()), 0); err != nil || all[0].Service().Count() != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	h := latency.New()
	for i := range 100 {
		h.Record(time.Duration(i+1) * time.Microsecond)
	}
	s := TimesOf(h, 50*time.Microsecond, 0)
	if s.Count() != 100 || s.At(0.5) != 0 || s.At(0.99).Round(time.Microsecond) != 49*time.Microsecond || s.At(1).Round(time.Microsecond) != 50*time.Microsecond || s.Mean().Round(10*time.Nanosecond) != 12750*time.Nanosecond {
		t.Errorf("%d, p50 %v, p99 %v, all %v, mean %v", s.Count(), s.At(0.5), s.At(0.99), s.At(1), s.Mean())
	}
	if TimesOf(latency.New(), 0, 0) != nil {
		t.Error("times of nothing")
	}
}

// pausing is a measurement of 800 calls of which some were held up.
func pausing(pauses int) Calibration {
	h := exponential(10 * time.Millisecond)
	c := Calibration{Slots: 1, Workers: 1, Times: latency.New()}
	for i := range 800 - pauses {
		c.Times.Record(h.At((float64(i) + 0.5) / 800))
	}
	for range pauses {
		c.Times.Record(400 * time.Millisecond)
	}
	return c
}

// A single pause of the measurement changes no answer.
func TestStrayPause(t *testing.T) {
	t.Parallel()
	thresholds, err := goal.Parse([]string{"p99<150ms"})
	if err != nil {
		t.Fatal(err)
	}
	var sizes [][]Size
	for pauses := range 2 {
		a := ask(t, Question{
			Rate: 300, Workers: []int{4, 5, 6, 7, 8, 9, 10, 11, 12}, Seed: 5, Calls: 20_000, Thresholds: thresholds,
			Calibrations: []Calibration{pausing(pauses)},
		})
		sizes = append(sizes, a.Sizes)
	}
	if !slices.Equal(sizes[0], sizes[1]) {
		t.Errorf("%+v\nwith a pause %+v", sizes[0], sizes[1])
	}
}

// A measurement of few calls leaves more open than one of many that came out the same.
func TestNoiseOfTheMeasurement(t *testing.T) {
	t.Parallel()
	few := pausing(8)
	many := few
	many.Times = latency.New()
	for range 100 {
		many.Times.Merge(few.Times)
	}
	var open []float64
	for _, c := range []Calibration{few, many} {
		cell := ask(t, Question{Rate: 300, Workers: []int{16}, Seed: 7, Calls: 200_000, Calibrations: []Calibration{c}}).cell(t, 1, 16, RoundRobin)
		open = append(open, float64(cell.Most99)/float64(cell.Least99))
	}
	if open[0] < 1.1 || open[1] > 1.05 {
		t.Errorf("p99 of parts differs by %.2f with few calls, by %.2f with many", open[0], open[1])
	}
}
