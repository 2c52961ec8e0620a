package lab

import (
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/report"
	"github.com/cabrank/cabrank/lab/internal/stats"
)

// The whole interval has to lie on the right side; a figure that is not tested does not hold.
func TestChange(t *testing.T) {
	tested := func(figure string, low, high float64) report.Tested {
		return report.Tested{Comparison: stats.Comparison{Figure: figure, Method: stats.Student, Ratio: stats.Interval{Low: low, High: high}}}
	}
	f := report.Findings{Tested: []report.Tested{tested("p99", 1.1, 1.2), tested("errors", 1, 1), {Comparison: stats.Comparison{Figure: "rate"}}}}
	for text, want := range map[string]bool{
		"p99<21%": true, "p99 < 20.0%": false, "p99>9%": true, "p99>11%": false, "p99<-1%": false,
		"errors<1%": true, "rate>-5%": false, "p50<1%": false,
	} {
		c, err := ParseChange(text)
		testkit.Must(t, err)
		if lines, held := c.Judge(f); held != want || len(lines) != 1 {
			t.Errorf("%s: %v, %q", text, held, lines)
		}
	}
	for _, text := range []string{"", "p99", "p99<5", "<5%", "p99<x%", "p77<5%", "p99<-101%"} {
		if _, err := ParseChange(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}
