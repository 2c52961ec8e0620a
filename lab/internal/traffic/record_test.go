package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// colourful is a client with answers of all kinds, by the number of the call.
func colourful(ctx context.Context, call Call) Answer {
	n := call.Number
	answer := after(ctx, time.Duration(n%100+1)*time.Millisecond)
	answer.Sent, answer.Received = Volume{1, 10}, Volume{2, 20}
	answer.Worker = fmt.Sprintf("worker-%d", n%3)
	answer.First = call.Due.Add(time.Millisecond)
	switch {
	case n%50 == 7:
		return Answer{Code: 14, Message: fmt.Sprintf("refused %d", n%100)}
	case n%50 == 9:
		return Answer{Code: 99}
	case n%500 == 11:
		<-ctx.Done()
		return Answer{Code: 1}
	}
	return answer
}

func asJSON(t *testing.T, r *Record) string {
	t.Helper()
	data, err := json.Marshal(r)
	testkit.Must(t, err)
	return string(data)
}

// What three processes have recorded of a plan is, merged, what one would have.
func TestMergeLosesNothing(t *testing.T) {
	o := Options{Rate: "300", Arrivals: "poisson", Duration: 10 * time.Second, Warmup: time.Second, Seed: 5}
	whole := run(t, o, clientFunc(colourful))
	if whole.Open.Count() == 0 || whole.Calls.Codes[14] == 0 || whole.Calls.Codes[2] == 0 || whole.First.Count() == 0 || len(whole.Workers) != 3 {
		t.Errorf("a run without all kinds of ends: %+v", whole)
	}
	merged := inParts(t, o, clientFunc(colourful))
	merged.MostUnderWay = whole.MostUnderWay // a sum of highest numbers is higher
	got, want := asJSON(t, merged), asJSON(t, whole)
	testkit.Want(t, got == want, "merged:\n%.2000s\nwhole:\n%.2000s", got, want)
}

func TestRecordAsJSON(t *testing.T) {
	r := run(t, Options{Rate: "1000", Duration: 60 * time.Second}, clientFunc(colourful))
	text := asJSON(t, r)
	testkit.Says(t, text,
		`{"loop":"open","plan":"open loop, rate 1m0s:1000 constant, seed 0, at most 10000 under way","counted_ns":60000000000,"cut_short":false,"due":60000,"calls":{"answered":"`,
		`"unsent":{"full":0,"late":0,"ages":"`,
		`"failures":[{"code":2,"message":"","calls":1200},{"code":14,"message":"refused 57","calls":600},{"code":14,"message":"refused 7","calls":600}]`,
		`"workers":{"worker-0":`,
		`"timeline":{"step_ns":1000000000,"intervals":[{"due":1000,"answered":`,
	)
	shares := r.Timeline.Intervals[30].Workers
	testkit.Want(t, len(shares) == 3 && shares["worker-1"] >= 300, "shares of a second: %v", shares)
	if len(text) > 100<<10 {
		t.Errorf("a minute takes %d bytes", len(text))
	}
	var read Record
	testkit.Must(t, json.Unmarshal([]byte(text), &read))
	testkit.Equal(t, asJSON(t, &read), text, "written again it differs")
}

func TestRecordRefused(t *testing.T) {
	good := asJSON(t, run(t, Options{Rate: "10", Duration: time.Second}, takes(time.Millisecond)))
	for _, tc := range []struct{ old, new, want string }{
		{`"loop":"open"`, `"loop":"ajar"`, `record: loop "ajar": want open or closed`},
		{`"due":10,"calls"`, `"due":11,"calls"`, "record: 11 calls were due, and 10 are in it"},
		{`"full":0`, `"full":1`, "record: 1 calls are unsent, with the ages of 0"},
		{`"open":"`, `"ajar":"`, "record: calls, ages, open calls, first messages, lag or workers are missing"},
	} {
		var r Record
		testkit.RefusedBy(t, json.Unmarshal([]byte(strings.Replace(good, tc.old, tc.new, 1)), &r), tc.want)
	}
}

func TestMergeRefused(t *testing.T) {
	a := newRecord(plan(t, Options{Rate: "10", Duration: time.Second}))
	for _, o := range []Options{{Rate: "11", Duration: time.Second}, {Callers: 10, Duration: time.Second}} {
		testkit.Want(t, a.Merge(newRecord(plan(t, o))) != nil, "%+v merged with another plan", o)
	}
	longer := newRecord(plan(t, Options{Rate: "10", Duration: time.Minute}))
	longer.Plan = a.Plan
	testkit.Want(t, a.Merge(longer) != nil, "timelines of other lengths merged")
}

// A long plan has longer intervals, not more of them.
func TestTimelineIsBounded(t *testing.T) {
	for _, tc := range []struct {
		counted, step time.Duration
		intervals     int
	}{
		{time.Nanosecond, time.Second, 1},
		{time.Second, time.Second, 1},
		{1500 * time.Millisecond, time.Second, 2},
		{10 * time.Minute, time.Second, 600},
		{10*time.Minute + 1, 2 * time.Second, 301},
		{24 * time.Hour, 144 * time.Second, 600},
	} {
		line := newTimeline(tc.counted)
		testkit.Want(t, line.Step == tc.step && len(line.Intervals) == tc.intervals,
			"%v: %d intervals of %v", tc.counted, len(line.Intervals), line.Step)
		line.at(-1).Due++
		line.at(2*tc.counted).Due++
	}
}

// Names and texts that come from outside are bounded, and their counts are kept.
func TestNamesAreBounded(t *testing.T) {
	shares, texts := Shares{}, failures{}
	for i := range 5000 {
		shares.add(fmt.Sprintf("%04d", i)+strings.Repeat("x", 1000), 1, mostWorkers)
		texts.add(14, fmt.Sprintf("%04d", i)+strings.Repeat("x", 1000), 1)
	}
	testkit.Want(t, len(shares) == mostWorkers+1 && shares[others] == 4000, "%d workers, %d others", len(shares), shares[others])
	list := texts.list()
	if len(list) != mostTexts+1 || list[0] != (Failure{Code: 14, Message: otherTexts, Calls: 4980}) || len(list[1].Message) != mostText {
		t.Errorf("%d texts: %v", len(list), list[0])
	}
}

func TestVariation(t *testing.T) {
	for _, tc := range []struct {
		shares  Shares
		workers int
		want    float64
	}{
		{Shares{}, 3, 0},
		{Shares{"a": 10, "b": 10}, 2, 0},
		{Shares{"a": 10, "b": 10}, 0, 0},
		{Shares{"a": 10}, 2, 1}, // mean 5, deviation 5
		{Shares{"a": 30, "b": 10}, 2, 0.5},
		{Shares{"a": 40}, 4, 1.7320508075688772},
	} {
		got := tc.shares.Variation(tc.workers)
		testkit.Want(t, got >= tc.want-1e-9 && got <= tc.want+1e-9, "%v of %d: %v, want %v", tc.shares, tc.workers, got, tc.want)
	}
}

// The rule, row by row: the latencies have the lag in them.
func TestGeneratorLimits(t *testing.T) {
	for _, tc := range []struct {
		name           string
		took, lag      time.Duration
		calls, lagging int
		busy           float64
		limits         bool
	}{
		{"idle", 10 * time.Millisecond, 100 * time.Microsecond, 10_000, 10_000, 0, false},
		{"busy core", 10 * time.Millisecond, 0, 10_000, 0, 0.85, true},
		{"less busy core", 10 * time.Millisecond, 0, 10_000, 0, 0.84, false},
		{"a little lag, a slow service", 200 * time.Millisecond, 1200 * time.Microsecond, 10_000, 10_000, 0, false},
		{"above a tenth", time.Millisecond, 120 * time.Microsecond, 10_000, 10_000, 0, true},
		{"a tenth of those beyond p99 are not late", time.Second, 200 * time.Millisecond, 10_000, 9, 0, false},
		{"a tenth of those beyond p99 are late", time.Second, 200 * time.Millisecond, 10_000, 11, 0, true},
		{"half a second of ten, few calls", 10 * time.Millisecond, 250 * time.Millisecond, 1000, 50, 0, true},
		{"half a second, hardly any calls", 10 * time.Millisecond, 250 * time.Millisecond, 10, 1, 0, true},
		{"hardly any calls, no lag", time.Microsecond, 0, 10, 0, 0, false},
		{"closed loop", time.Millisecond, 0, 0, 0, 0.5, false},
	} {
		r := newRecord(plan(t, Options{Rate: "1", Duration: time.Second}))
		for i := range tc.calls {
			lag := tc.lag
			if i >= tc.lagging {
				lag = 0
			}
			r.Calls.Answer(tc.took + lag)
			r.Lag.Record(lag)
		}
		why := r.GeneratorLimits(tc.busy)
		testkit.Want(t, (why != "") == tc.limits, "%s: %q", tc.name, why)
	}
}

func FuzzRecord(f *testing.F) {
	empty, err := json.Marshal(newRecord(plan(f, Options{Rate: "10", Duration: time.Second})))
	testkit.Must(f, err)
	f.Add(string(empty))
	f.Fuzz(func(t *testing.T, text string) {
		var r Record
		if json.Unmarshal([]byte(text), &r) != nil {
			return
		}
		testkit.Want(t, r.Due == r.Calls.Count()+r.Unsent.Ages.Count()+r.Open.Count() && r.FailedShare() >= 0 && r.FailedShare() <= 1,
			"%d due, failed share %v", r.Due, r.FailedShare())
		r.GeneratorLimits(0.5)
		r.Workers.Variation(3)
	})
}
