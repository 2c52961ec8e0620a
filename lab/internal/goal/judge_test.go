package goal

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

const ms = time.Millisecond

func TestJudge(t *testing.T) {
	// 985 answers of 10 ms, 5 of 200 ms, 5 failures, 3 unsent, 2 open.
	r := fail(add(add(blank(2*time.Second), 985, 10*ms), 5, 200*ms), 5)
	for range 3 {
		r.Unsent.Ages.Record(2 * time.Second)
	}
	for range 2 {
		r.Open.Record(3 * time.Second)
	}
	r.Unsent.Full = 3
	r.Due += 5
	for text, want := range map[string]struct {
		verdict  Verdict
		measured string
	}{
		"p50<20ms":     {Held, "10ms"},
		"p98.9<20ms":   {Held, "10ms"},
		"p99<20ms":     {Missed, "200ms"},  // 10 of 995 are longer: 1.005 %
		"p99.5<1s":     {Missed, "2.001s"}, // answers alone would say 200 ms
		"p99.8<2s":     {Missed, "3.001s"},
		"max<=3s":      {Missed, "3.001s"}, // histograms are up to 0.1 % too high
		"max<3.1s":     {Held, "3.001s"},
		"mean<23ms":    {Held, "22.96ms"},
		"mean>30ms":    {Missed, "22.96ms"},
		"errors<1%":    {Missed, "1%"},
		"errors<=1%":   {Held, "1%"},
		"unsent<0.3%":  {Missed, "0.3%"},
		"unsent<=0.3%": {Held, "0.3%"},
		"rate>=495":    {Held, "495/s"},
		"rate>495":     {Missed, "495/s"},
	} {
		j := Thresholds{parse(t, text)[0]}.Judge(r, 0)
		f := j.Findings[0]
		testkit.Want(t, j.Verdict == want.verdict && f.Verdict == want.verdict && f.Measured() == want.measured,
			"%s: %s, %s, measured %s; want %v", text, j.Verdict, f.Verdict, f.Measured(), want)
	}
}

// A threshold says something about these calls, however few they are.
func TestFewCallsAreJudged(t *testing.T) {
	for _, c := range []struct {
		fast, slow int
		want       Verdict
	}{
		{1, 0, Held},
		{0, 1, Missed},
		{98, 1, Missed}, // 1 of 99 is more than 1 %
		{99, 1, Held},
		{147, 2, Missed},
		{197, 2, Missed},
		{198, 2, Held},
		{9900, 100, Held},
		{9899, 101, Missed},
	} {
		j := parse(t, "p99<100ms").Judge(add(add(blank(time.Second), c.fast, 10*ms), c.slow, time.Second), 0)
		f := j.Findings[0]
		testkit.Want(t, j.Verdict == c.want && (f.Note == "") == (c.fast+c.slow >= 10_000), "%+v: %s, %+v", c, j.Verdict, f)
	}
	j := parse(t, "p99<100ms").Judge(add(blank(time.Second), 500, 10*ms), 0)
	testkit.Equal(t, j.Findings[0].Note, "of 500 calls: the next run may differ, 10,000 calls tell this quantile", "the note")
}

// What nobody has measured is neither held nor missed.
func TestNothingMeasured(t *testing.T) {
	all := parse(t, "p99<100ms", "max<1s", "mean<1s", "errors<1%", "unsent<1%", "rate>=1")
	j := all.Judge(blank(0), 0)
	for _, f := range j.Findings {
		testkit.Want(t, f.Verdict == Unknown && f.Empty && f.Measured() == "nothing measured", "%+v", f)
	}
	testkit.Want(t, j.Verdict == Unknown, "%v", j.Verdict)
	// With failures only there is no latency, and the threshold is missed.
	if j := parse(t, "p99<100ms").Judge(fail(blank(time.Second), 10), 0); j.Verdict != Missed ||
		j.String() != "missed, p99<100ms (nothing measured), errors<1% (100%)" {
		t.Error(j)
	}
}

func TestWhatIsNotJudged(t *testing.T) {
	late := lag(add(blank(time.Second), 1000, 10*ms), 1000, 10*ms)
	cut := add(blank(time.Second), 1000, 10*ms)
	cut.Cut = true
	for _, c := range []struct {
		r    *traffic.Record
		busy float64
		want string
	}{
		{late, 0, "not judged: calls were sent late by the generator, the latest by 10ms, and p99<1ms hangs on it"},
		{add(blank(time.Second), 1000, 10*ms), 0.9, "not judged: the generator's core was 90 % busy"},
		{cut, 0, "not judged: the run was cut short"},
	} {
		j := parse(t, "p99<1ms").Judge(c.r, c.busy)
		if j.Verdict != Unknown || j.Findings[0].Verdict != Unknown || j.Findings[0].Measured() != "10ms" || !strings.HasPrefix(j.String(), c.want) {
			t.Errorf("%v: %+v", j, j.Findings)
		}
	}
}

// A lag that matters only since the service is fast leaves what it cannot change: the
// latencies, 1 ms here, are too high by 0.5 ms at most.
func TestSmallLag(t *testing.T) {
	r := lag(add(blank(time.Second), 1000, ms), 1000, ms/2)
	for text, want := range map[string]Verdict{
		"p99<100ms": Held, "p99<1100us": Held, "p99<900us": Unknown, "p99<400us": Missed, "max<2ms": Held,
		"p50>400us": Held, "p50>900us": Unknown, "p50>2ms": Missed, "errors<=0%": Held, "rate>=900": Held,
	} {
		j := parse(t, text).Judge(r, 0)
		if f := j.Findings[0]; f.Verdict != want || (f.Unit == Nanoseconds) != strings.Contains(f.Note, "send lag of the generator") {
			t.Errorf("%s: %s, %q; want %s", text, f.Verdict, f.Note, want)
		}
		testkit.Want(t, (j.Generator != "") == (want == Unknown), "%s: %s, generator %q", text, j.Verdict, j.Generator)
		if j := parse(t, text).Judge(r, 0.9); j.Verdict != Unknown {
			t.Errorf("%s with a busy core: %s", text, j.Verdict)
		}
	}
}

// A generator that stands still for half a second of ten makes 5 % of the calls late: what
// lies in them says nothing of the service, and what they cannot change is judged.
func TestPausedGenerator(t *testing.T) {
	r := add(blank(10*time.Second), 950, 10*ms)
	for i := range 50 {
		r = lag(add(r, 1, 10*ms+time.Duration(50-i)*10*ms), 1, time.Duration(50-i)*10*ms)
	}
	r = lag(r, 950, 0)
	for text, want := range map[string]Verdict{
		"p99<100ms": Unknown, "p90<100ms": Held, "max<100ms": Unknown, "p50<5ms": Missed, "mean<20ms": Unknown, "mean<5ms": Missed,
		"p99<600ms": Held, "errors<1%": Held, "rate>=100": Held, "rate>=104": Unknown, "rate>=200": Missed,
	} {
		if j := parse(t, text).Judge(r, 0); j.Findings[0].Verdict != want || (want == Unknown) != strings.Contains(j.Generator, "sent late") {
			t.Errorf("%s: %+v", text, j)
		}
	}
	if j := parse(t, "p99<100ms", "p50<5ms").Judge(r, 0); j.Verdict != Missed || !strings.HasPrefix(j.String(), "missed, p99<100ms (") {
		t.Errorf("one hangs on the lag, the other does not: %s", j)
	}
	r = fail(r, 30)
	r.Unsent.Late = 10
	for text, want := range map[string]Verdict{"errors<1%": Unknown, "unsent<0.5%": Unknown, "unsent<5%": Held} {
		if j := parse(t, text).Judge(r, 0); j.Findings[0].Verdict != want {
			t.Errorf("%s: %+v", text, j)
		}
	}
	if j := parse(t, "errors<1%").Judge(fail(r, 200), 0); j.Verdict != Missed {
		t.Errorf("%+v", j)
	}
}

// A lag of 1.2 ms does not matter to a service that takes 200 ms.
func TestSlowService(t *testing.T) {
	r := lag(add(blank(10*time.Second), 10_000, 200*ms), 10_000, 1200*time.Microsecond)
	if j := parse(t, "p99<300ms").Judge(r, 0); j.Verdict != Held || j.Generator != "" || j.Findings[0].Note != "" || r.GeneratorLimits(0) != "" {
		t.Errorf("%+v, %s", j, r.GeneratorLimits(0))
	}
}

func TestJudgementAsJSON(t *testing.T) {
	data, err := json.Marshal(parse(t, "p99<100ms").Judge(add(blank(time.Second), 100, 10*ms), 0))
	want := `{"verdict":"held","thresholds":[` +
		`{"threshold":"p99\u003c100ms","value":10002431,"unit":"ns","verdict":"held","note":"of 100 calls: the next run may differ, 10,000 calls tell this quantile"},` +
		`{"threshold":"errors\u003c1%","added":true,"value":0,"unit":"share","verdict":"held"}]}`
	testkit.Want(t, err == nil && string(data) == want, "%s, %v", data, err)
}
