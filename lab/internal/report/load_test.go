package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/goal"
	"github.com/cabrank/cabrank/lab/internal/traffic"
	"github.com/cabrank/cabrank/lab/test/made"
)

// loadOf is an open load of so many calls a second for some seconds: each takes 20 ms, but one in
// ten, that of worker-2, takes 40 ms. In the seconds that broken names all fail at once.
func loadOf(perSecond, seconds int, broken ...int) Load {
	r := made.Load(perSecond, seconds, 20*time.Millisecond, broken...)
	if n := r.Calls.Failed.Count(); n > 0 {
		r.Failures = []traffic.Failure{{Code: 14, Message: "busy <now>", Calls: n}}
	}
	return Load{Method: "demo.Jobs/GetJob", Address: "localhost:8080", Began: time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC), Record: r}
}

func TestSummary(t *testing.T) {
	const forty = "40 calls answered, 40 a second, the slowest in 40 ms."
	for _, test := range []struct {
		name string
		load Load
		more func(*Load, *traffic.Record)
		want []string
	}{
		{"all answered", loadOf(1000, 20), nil, []string{"p99 is 40 ms. 20,000 calls answered, 1,000 a second, the slowest in 40 ms."}},
		{"a second of failures", loadOf(100, 10, 2), nil, []string{
			"p50 is 20 ms, with errors of 10.0 %. 900 calls answered, 90 a second, the slowest in 40 ms.",
			"100 calls had no answer, 10.0 % of those due: 100 failed.",
		}},
		{"nothing answered", loadOf(10, 1, 0), nil, []string{"None of 10 calls was answered.", "10 calls had no answer, 100 % of those due: 10 failed."}},
		{"unsent and open", loadOf(1000, 10), func(_ *Load, r *traffic.Record) {
			r.Due += 6
			r.Unsent.Late, r.Unsent.Full = 1, 2
			for range 3 {
				r.Unsent.Ages.Record(time.Second)
				r.Open.Record(2 * time.Second)
			}
		}, []string{
			"p99 is 40 ms. 10,000 calls answered, 1,000 a second, the slowest in 40 ms.",
			"6 calls had no answer, 0.06 % of those due: 1 passed their deadline before they could be sent, 2 found too many others under way, 3 had not ended when the grace was over.",
		}},
		{"closed loop, limited, cut short", loadOf(40, 1), func(l *Load, r *traffic.Record) { l.Limited, r.Loop, r.Cut = "busy", traffic.ClosedLoop, true }, []string{
			forty, "Not judged, for the generator may be what was measured: busy.",
			"A closed loop: callers wait for answers, so a slow service is asked less often. Do not set these latencies beside those of an open loop.",
			"Cut short after 1 s.",
		}},
		{"sent late", loadOf(40, 1), func(l *Load, r *traffic.Record) {
			r.Lag.Record(500 * time.Millisecond)
			l.Limited = r.GeneratorLimits(0)
		}, []string{
			forty, "Not judged, for the generator may be what was measured: calls were sent late by the generator: it is 500.04ms on average, 2.2ms is allowed (a tenth of the mean).",
			"The lag is in the latencies: they are too high by it, by up to 500 ms, and not too low. To measure more exactly, give the generator cores of its own (taskset) or another machine, or take a closed loop (--callers), which has no send lag.",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.more != nil {
				test.more(&test.load, test.load.Record)
			}
			got := sentences(test.load.Document())
			testkit.Want(t, slices.Equal(got, test.want), "got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		})
	}
}

// The page has what was found, and says it in words, too.
func TestLoadPage(t *testing.T) {
	l := loadOf(1000, 20, 5)
	thresholds, err := goal.Parse([]string{"p99<1s", "p50<10ms"})
	testkit.Must(t, err)
	judgement := thresholds.Judge(l.Record, 0)
	l.Judgement = &judgement
	text := string(l.Document().HTML())
	testkit.Says(t, text,
		"demo.Jobs/GetJob at localhost:8080", "p99&lt;1s", "Thresholds: missed, p50&lt;10ms (20ms), errors&lt;1% (5%).",
		"One call in 100 takes longer than 40 ms, 5.0 % errors", "all but failed",
		"In 1 of 20 seconds calls were not answered",
		"Unavailable", "busy &lt;now&gt;", "worker-2", "Coefficient of variation 0.80",
		"2026-11-22 03:04:05 UTC", "too few, needs 100,000", "ms, may be chance: needs 10,000",
	)
	if len(text) > 200<<10 {
		t.Errorf("%d bytes", len(text))
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ns", 999: "999 ns", 1500: "1.5 µs", 812 * time.Microsecond: "812 µs", 999_600: "1 ms",
		34_120_000: "34.1 ms", 1_250 * time.Millisecond: "1.25 s", 90 * time.Second: "90 s", time.Hour: "3600 s",
	} {
		testkit.Equal(t, span(d), want, "%d ns", d)
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{
		0: "0 %", 0.00001: "< 0.01 %", 0.005: "0.50 %", 0.123: "12.3 %", 0.9912: "99.12 %", 0.99999: "> 99.99 %", 1: "100 %",
	} {
		testkit.Equal(t, percent(share), want, "%v", share)
	}
}
