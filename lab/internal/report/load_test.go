package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/goal"
	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// loadOf is an open load of so many calls a second for some seconds: each takes 20 ms, but one in
// ten, that of worker-2, takes 40 ms. In the seconds from breaks to mends all fail at once.
func loadOf(t *testing.T, perSecond, seconds, breaks, mends int) Load {
	t.Helper()
	r := &traffic.Record{
		Loop: traffic.OpenLoop, Plan: "open loop", Counted: time.Duration(seconds) * time.Second,
		Calls: latency.NewCalls(), Unsent: traffic.Unsent{Ages: latency.New()}, Open: latency.New(),
		First: latency.New(), Lag: latency.New(), Workers: traffic.Shares{},
		Timeline: traffic.Timeline{Step: time.Second, Intervals: make([]traffic.Interval, seconds)},
	}
	for second := range seconds {
		fill(r, &r.Timeline.Intervals[second], perSecond, second >= breaks && second < mends)
	}
	if n := r.Calls.Failed.Count(); n > 0 {
		r.Failures = []traffic.Failure{{Code: 8, Message: "busy <now>", Calls: n}}
	}
	return Load{Method: "demo.Jobs/GetJob", Address: "localhost:8080", Began: time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC), Record: r}
}

// fill adds the calls of one second.
func fill(r *traffic.Record, i *traffic.Interval, calls int, broken bool) {
	r.Due += int64(calls)
	i.Due = int64(calls)
	if broken {
		i.Failed = i.Due
		for range calls {
			r.Calls.Fail(8, time.Millisecond)
		}
		return
	}
	i.Answered, i.Came = i.Due, i.Due
	r.Came += i.Came
	for n := range calls {
		worker, took := "worker-1", 20*time.Millisecond
		if n%10 == 9 {
			worker, took = "worker-2", 40*time.Millisecond
		}
		r.Calls.Answer(took)
		r.Workers[worker]++
	}
}

func TestSummary(t *testing.T) {
	for _, test := range []struct {
		name string
		load Load
		more func(*Load)
		want []string
	}{
		{
			name: "all answered",
			load: loadOf(t, 1000, 20, 0, 0),
			want: []string{"p99 is 40 ms. 20,000 calls answered, 1,000 a second, the slowest in 40 ms."},
		},
		{
			name: "a second of failures",
			load: loadOf(t, 100, 10, 2, 3),
			want: []string{
				"p50 is 20 ms, with errors of 10.0 %. 900 calls answered, 90 a second, the slowest in 40 ms.",
				"100 calls had no answer, 10.0 % of those due: 100 failed.",
			},
		},
		{
			name: "nothing answered",
			load: loadOf(t, 10, 1, 0, 1),
			want: []string{"None of 10 calls was answered.", "10 calls had no answer, 100 % of those due: 10 failed."},
		},
		{
			name: "unsent and open",
			load: loadOf(t, 1000, 10, 0, 0),
			more: func(l *Load) {
				r := l.Record
				r.Due += 6
				r.Unsent.Late, r.Unsent.Full = 1, 2
				for range 3 {
					r.Unsent.Ages.Record(time.Second)
					r.Open.Record(2 * time.Second)
				}
			},
			want: []string{
				"p99 is 40 ms. 10,000 calls answered, 1,000 a second, the slowest in 40 ms.",
				"6 calls had no answer, 0.06 % of those due: 1 passed their deadline before they could be sent," +
					" 2 found too many others under way, 3 had not ended when the grace was over.",
			},
		},
		{
			name: "closed loop, limited, cut short",
			load: loadOf(t, 40, 1, 0, 0),
			more: func(l *Load) { l.Limited, l.Record.Loop, l.Record.Cut = "busy", traffic.ClosedLoop, true },
			want: []string{
				"40 calls answered, 40 a second, the slowest in 40 ms.",
				"Not judged, for the generator may be what was measured: busy.",
				"A closed loop: callers wait for answers, so a slow service is asked less often. Do not set these latencies beside those of an open loop.",
				"Cut short after 1 s.",
			},
		},
		{
			name: "sent late",
			load: loadOf(t, 40, 1, 0, 0),
			more: func(l *Load) {
				l.Record.Lag.Record(500 * time.Millisecond)
				l.Limited = l.Record.GeneratorLimits(0)
			},
			want: []string{
				"40 calls answered, 40 a second, the slowest in 40 ms.",
				"Not judged, for the generator may be what was measured: calls were sent late by the generator: it is 500.04ms on average, 2.2ms is allowed (a tenth of the mean).",
				"The lag is in the latencies: they are too high by it, by up to 500 ms, and not too low. To measure more exactly, give the generator cores of its own (taskset) or another machine, or take a closed loop (--callers), which has no send lag.",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.more != nil {
				test.more(&test.load)
			}
			if got := sentences(test.load.Document()); !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// The page has what was found, and says it in words, too.
func TestLoadPage(t *testing.T) {
	l := loadOf(t, 1000, 20, 5, 6)
	thresholds, err := goal.Parse([]string{"p99<1s", "p50<10ms"})
	testkit.Must(t, err)
	judgement := thresholds.Judge(l.Record, 0)
	l.Judgement = &judgement
	text := string(l.Document().HTML())
	for _, want := range []string{
		"demo.Jobs/GetJob at localhost:8080", "p99&lt;1s", "Thresholds: missed, p50&lt;10ms (20ms), errors&lt;1% (5%).",
		"One call in 100 takes longer than 40 ms, 5.0 % errors", "all but failed",
		"In 1 of 20 seconds calls were not answered",
		"ResourceExhausted", "busy &lt;now&gt;", "worker-2", "Coefficient of variation 0.80",
		"2026-11-22 03:04:05 UTC", "too few, needs 100,000", "ms, may be chance: needs 10,000",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	if len(text) > 200<<10 {
		t.Errorf("%d bytes", len(text))
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ns", 999: "999 ns", 1500: "1.5 µs", 812 * time.Microsecond: "812 µs", 999_600: "1 ms",
		34_120_000: "34.1 ms", 1_250 * time.Millisecond: "1.25 s", 90 * time.Second: "90 s", time.Hour: "3600 s",
	} {
		if got := span(d); got != want {
			t.Errorf("%d ns: %s, want %s", d, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{
		0: "0 %", 0.00001: "< 0.01 %", 0.005: "0.50 %", 0.123: "12.3 %", 0.9912: "99.12 %", 0.99999: "> 99.99 %", 1: "100 %",
	} {
		if got := percent(share); got != want {
			t.Errorf("%v: %s, want %s", share, got, want)
		}
	}
}
