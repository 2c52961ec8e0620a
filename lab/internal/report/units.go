package report

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// span writes a duration with three digits, as people read it: 812 µs, 34.1 ms, 1.25 s.
func span(d time.Duration) string {
	length, name := time.Second, "s"
	for i, u := range []time.Duration{time.Millisecond, time.Microsecond, time.Nanosecond} {
		if float64(d) < 999.5*float64(u) {
			length, name = u, []string{"ms", "µs", "ns"}[i]
		}
	}
	if value := float64(d) / float64(length); value < 999.5 {
		return strconv.FormatFloat(value, 'g', 3, 64) + " " + name
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 0, 64) + " s"
}

// count writes a number with commas between the thousands.
func count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func calls(n int64) string {
	return plural(int(n), "call")
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

// plainNumber is a number as short as it can be: 0.5, 20, 1,000.
func plainNumber(v float64) string {
	if v == math.Trunc(v) {
		return count(int64(v))
	}
	return fmt.Sprintf("%.4g", v)
}

func rate(perSecond float64) string {
	if perSecond < 10 {
		return fmt.Sprintf("%.2f", perSecond)
	}
	return count(int64(perSecond + 0.5))
}

func quantileName(share float64) string {
	return fmt.Sprintf("p%g", float64(int(share*1e5+0.5))/1e3)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return count(int64(n)) + " " + what + "s"
}

// finite reports whether a value can be drawn.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
