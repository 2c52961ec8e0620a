package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// span writes a duration with three digits, as people read it: 812 µs, 34.1 ms, 1.25 s.
func span(d time.Duration) string {
	u := unitOf(d)
	value := float64(d) / float64(u.length)
	digits := 0
	switch {
	case u.length == time.Nanosecond:
	case value < 9.995:
		digits = 2
	case value < 99.95:
		digits = 1
	}
	text := strconv.FormatFloat(value, 'f', digits, 64)
	if digits > 0 {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text + " " + u.name
}

type unit struct {
	length time.Duration
	name   string
}

// unitOf is the one in which a duration is below 1000, up to seconds.
func unitOf(d time.Duration) unit {
	for _, u := range []unit{{time.Nanosecond, "ns"}, {time.Microsecond, "µs"}, {time.Millisecond, "ms"}} {
		if float64(d) < 999.5*float64(u.length) {
			return u
		}
	}
	return unit{time.Second, "s"}
}

// axisUnit is one in which the ticks of an axis up to a duration are whole numbers.
func axisUnit(most time.Duration) unit {
	switch {
	case most < 20*time.Millisecond:
		return unit{time.Microsecond, "µs"}
	case most < 20*time.Second:
		return unit{time.Millisecond, "ms"}
	}
	return unit{time.Second, "s"}
}

func (u unit) of(d time.Duration) float64 { return float64(d) / float64(u.length) }

// count writes a number with commas between the thousands.
func count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// calls writes a number of calls.
func calls(n int64) string {
	if n == 1 {
		return "1 call"
	}
	return count(n) + " calls"
}

// percent writes a share of 1 with two digits that matter, and never rounds what is
// not all, or not nothing, to it.
func percent(share float64) string {
	switch p := 100 * share; {
	case share <= 0:
		return "0 %"
	case share >= 1:
		return "100 %"
	case p < 0.01:
		return "< 0.01 %"
	case p > 99.99:
		return "> 99.99 %"
	case p < 1 || p > 99:
		return fmt.Sprintf("%.2f %%", p)
	default:
		return fmt.Sprintf("%.1f %%", p)
	}
}
