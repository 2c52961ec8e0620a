package stats

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Interval is a range of ratios.
//
// Shape: Low <= High, from 0 to infinity. In JSON an infinite end is null.
type Interval struct {
	// Low and High are the ends.
	Low, High float64
	// Middle is the best guess: the geometric mean of the ratios, or their
	// median. It is nil if that is infinite, or depends on what is unknown.
	Middle *float64
}

type intervalJSON struct {
	Low    *float64 `json:"low"`
	Middle *float64 `json:"middle"`
	High   *float64 `json:"high"`
}

// MarshalJSON writes {"low":0.56,"middle":0.62,"high":0.69}.
func (i Interval) MarshalJSON() ([]byte, error) {
	end := func(ratio float64) *float64 {
		if math.IsInf(ratio, 1) {
			return nil
		}
		return &ratio
	}
	return json.Marshal(intervalJSON{Low: end(i.Low), Middle: i.Middle, High: end(i.High)})
}

// UnmarshalJSON reads what MarshalJSON has written.
func (i *Interval) UnmarshalJSON(data []byte) error {
	var read intervalJSON
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	end := func(ratio *float64) float64 {
		if ratio == nil {
			return math.Inf(1)
		}
		return *ratio
	}
	*i = Interval{Low: end(read.Low), Middle: read.Middle, High: end(read.High)}
	return nil
}

// Words says the conclusion in plain words: "p99 lower by 31–44 %", "p99: no
// difference shown (3 % lower to 8 % higher)", "p99 about equal (within 5 %)",
// "p99: too few pairs (8, needs 10)". It speaks of the arm Other. What is said
// of blocks without answers is in Silence.
func (c Comparison) Words() string {
	switch c.Verdict {
	case Lower, Higher:
		return c.Figure + " " + c.Ratio.words()
	case AboutEqual:
		words := fmt.Sprintf("%s about equal (within %s %%)", c.Figure, number(100*c.Margin, 0))
		if c.P <= Alpha {
			words += ", " + c.Ratio.words()
		}
		return words
	case NoDifference:
		return fmt.Sprintf("%s: no difference shown (%s)", c.Figure, c.Ratio.span())
	default:
		return fmt.Sprintf("%s: too few pairs (%s, needs %d)", c.Figure, c.have(), MinPairs)
	}
}

func (c Comparison) have() string {
	if c.Known == c.Pairs {
		return strconv.Itoa(c.Pairs)
	}
	return fmt.Sprintf("%d of %d known", c.Known, c.Pairs)
}

// Silence says in how many blocks an arm did not answer any call: "cabrank
// answered no call in 2 of 10 runs". It is empty if there are none.
func (c Comparison) Silence(base, other string) string {
	var lines []string
	for _, arm := range []struct {
		name   string
		silent int
	}{{base, c.BaseSilent}, {other, c.OtherSilent}} {
		if arm.silent > 0 {
			lines = append(lines, fmt.Sprintf("%s answered no call in %d of %d runs", arm.name, arm.silent, c.Pairs))
		}
	}
	return strings.Join(lines, ", ")
}

// words says a range that lies on one side of one.
func (i Interval) words() string {
	switch {
	case i.High == 0:
		return "lower without bound"
	case math.IsInf(i.Low, 1):
		return "higher without bound"
	case i.High < 1 && i.Low == 0:
		return "lower by at least " + percent(1-i.High)
	case i.High < 1:
		return "lower by " + percents(1-i.High, 1-i.Low)
	case math.IsInf(i.High, 1):
		return "higher by at least " + percent(i.Low-1)
	case i.Low >= 2:
		return between(number(i.Low, 1), number(i.High, 1)) + " times as high"
	case i.High >= 10: // percentages of four digits say nothing to anybody
		return between(number(i.Low, 2), number(i.High, 1)) + " times as high"
	default:
		return "higher by " + percents(i.Low-1, i.High-1)
	}
}

// span says a range that has one in it, or may have.
func (i Interval) span() string {
	return side(i.Low) + " to " + side(i.High)
}

// side says one end of a range, from the point of view of one.
func side(ratio float64) string {
	switch {
	case ratio == 0:
		return "any amount lower"
	case math.IsInf(ratio, 1):
		return "any amount higher"
	case ratio == 1:
		return "0 %"
	case ratio < 1:
		return percent(1-ratio) + " lower"
	case ratio >= 2:
		return number(ratio, 1) + " times as high"
	default:
		return percent(ratio-1) + " higher"
	}
}

// percents says a range of shares: "31–44 %". Both have so many decimals that
// the smaller one is not rounded to nothing.
func percents(small, large float64) string {
	low, high := 100*small, 100*large
	places := decimals(low)
	if number(low, places) == number(0, places) {
		return "at most " + number(high, decimals(high)) + " %"
	}
	return between(number(low, places), number(high, places)) + " %"
}

func percent(share float64) string {
	return number(100*share, decimals(100*share)) + " %"
}

// decimals is how many figures behind the point a percentage deserves: two at
// most, for nobody measures more.
func decimals(percent float64) int {
	switch {
	case percent >= 1 || percent == 0:
		return 0
	case percent >= 0.1:
		return 1
	default:
		return 2
	}
}

// number writes x with at most so many decimals, without zeros behind them,
// and in powers of ten what is too large to count.
func number(x float64, decimals int) string {
	if x >= 1e6 {
		return strconv.FormatFloat(x, 'e', 1, 64)
	}
	scale := math.Pow10(decimals)
	return strconv.FormatFloat(math.Round(x*scale)/scale, 'f', -1, 64)
}

// between joins the ends of a range, unless they look the same.
func between(low, high string) string {
	if low == high {
		return low
	}
	return low + "–" + high
}
