package goal

import (
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Threshold{
		"p50<20ms":        {name: "p", share: 0.5, op: "<", limit: 20e6, unit: Nanoseconds},
		"p99 <= 100ms":    {name: "p", share: 0.99, op: "<=", limit: 100e6, unit: Nanoseconds},
		"p99.9<1s":        {name: "p", share: 0.999, op: "<", limit: 1e9, unit: Nanoseconds},
		"p0.001>=1ns":     {name: "p", share: 0.00001, op: ">=", limit: 1, unit: Nanoseconds},
		"p99.999<1m30s":   {name: "p", share: 0.99999, op: "<", limit: 90e9, unit: Nanoseconds},
		"max<2s":          {name: "max", op: "<", limit: 2e9, unit: Nanoseconds},
		" mean > 1.5us ":  {name: "mean", op: ">", limit: 1500, unit: Nanoseconds},
		"errors<1%":       {name: "errors", op: "<", limit: 0.01, unit: Share},
		"failed<=0 %":     {name: "errors", op: "<=", limit: 0, unit: Share},
		"errors<0.7%":     {name: "errors", op: "<", limit: 0.007, unit: Share},
		"unsent<=100%":    {name: "unsent", op: "<=", limit: 1, unit: Share},
		"rate>=450":       {name: "rate", op: ">=", limit: 450, unit: PerSecond},
		"rate >= 450.5/s": {name: "rate", op: ">=", limit: 450.5, unit: PerSecond},
	} {
		got, err := ParseThreshold(text)
		if want.text = strings.ReplaceAll(text, " ", ""); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "no comparison; want one such as p99<100ms",
		"p99":                    "no comparison",
		"p99=100ms":              `"=" is no comparison; want <, <=, > or >=`,
		"p99==100ms":             `"==" is no comparison`,
		"p99!=100ms":             `"!=" is no comparison`,
		"p99=<100ms":             `"=<" is no comparison`,
		"<100ms":                 `"" is not a figure; want any quantile such as p50, p99 or p99.9, max, mean, errors, unsent or rate`,
		"latency<100ms":          `"latency" is not a figure`,
		"p<100ms":                `"p" is not a figure`,
		"99<100ms":               `"99" is not a figure`,
		"p-1<100ms":              `"p-1" is not a figure`,
		"p9e1<100ms":             `"p9e1" is not a figure`,
		"P99<100ms":              `"P99" is not a figure`,
		"p1.2.3<100ms":           `"p1.2.3" is not a figure`,
		"p(99)<100":              `"p(99)" is not a figure`,
		"avg<100ms":              `"avg" is not a figure`,
		"p0<1s":                  `"p0" is not a quantile from p0.001 to p99.999; the longest latency is max`,
		"p101<1s":                `"p101" is not a quantile`,
		"p99.9999<1s":            `"p99.9999" is not a quantile`,
		"p99<100":                `"100" has no unit; want a duration such as 100ms`,
		"p99<":                   `"" is not a duration such as 20ms or 1.5s`,
		"p99<fast":               `"fast" is not a duration`,
		"p99<0s":                 `"0s": want a duration above 0 and below 1h0m0s`,
		"p99<-1s":                `want a duration above 0`,
		"max<1h":                 `and below 1h0m0s`,
		"p99<1s,errors<1%":       `"1s,errors<1%" is not a duration`,
		"errors<0.01":            `"0.01" is not a share from 0% to 100%, such as 0.5%`,
		"errors<101%":            `"101%" is not a share`,
		"errors<-1%":             `"-1%" is not a share`,
		"errors<1e-3%":           `"1e-3%" is not a share`,
		"errors<NaN%":            `is not a share`,
		"errors<0%":              `it can never hold; want <= instead of <`,
		"errors>100%":            `it can never hold; want >= instead of >`,
		"rate>=0":                `"0" is not a number of answers per second above 0, such as 450`,
		"rate>=Inf":              `is not a number of answers`,
		"rate>=450/m":            `is not a number of answers`,
		"a\nb<\x1b[31m1s":        `"a\nb" is not a figure`,
		"p99<\n\x1b[31mx":        `"\x1b[31mx" is not a duration`,
		strings.Repeat("x", 101): "it has 101 bytes",
	} {
		_, err := Parse([]string{text})
		testkit.Want(t, err != nil && strings.Contains(err.Error(), want) && strings.HasPrefix(err.Error(), "--fail "),
			"%q: %v; want %s", text, err, want)
		testkit.Want(t, err == nil || !strings.ContainsAny(err.Error(), "\n\x1b"), "%q: more than a line: %q", text, err)
	}
	if _, err := Parse(nil); err == nil {
		t.Error("no threshold is taken for some")
	}
	_, err := Parse(make([]string, 101))
	testkit.RefusedBy(t, err, "--fail: 101 thresholds, at most 100 are judged")
}

// Who says nothing on errors gets a threshold for them; who does, none.
func TestErrorsAreJudgedToo(t *testing.T) {
	for text, want := range map[string]int{"p99<1s": 2, "unsent<1%": 2, "rate>=1": 2, "errors<=100%": 1, "failed<50%": 1} {
		all := parse(t, text)
		testkit.Want(t, len(all) == want && !all[0].added && all[len(all)-1].added == (want == 2), "%s: %+v", text, all)
	}
}

func FuzzParseThreshold(f *testing.F) {
	for _, text := range []string{"p50<20ms", "p99.9 <= 1s", "max<2s", "mean>1us", "errors<0.7 %", "failed<=0%", "unsent<1%", "rate>=450/s", "p(99)<100", "p99<100", "errors<1e5%"} {
		f.Add(text)
	}
	r := add(blank(time.Second), 10, time.Millisecond)
	f.Fuzz(func(t *testing.T, text string) {
		one, err := ParseThreshold(text)
		if err != nil {
			testkit.Want(t, !strings.ContainsAny(err.Error(), "\n\x1b"), "%q: %q is more than a line of text", text, err)
			return
		}
		again, err := ParseThreshold(one.String())
		testkit.Need(t, err == nil && again == one, "%q: %+v is read again as %+v, %v", text, one, again, err)
		v := (Thresholds{one}).Judge(r, 0).Verdict
		testkit.Want(t, v == Held || v == Missed, "%q: %s", text, v)
	})
}
