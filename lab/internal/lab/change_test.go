package lab

import (
	"testing"

	"github.com/cabrank/cabrank/lab/internal/report"
)

// Of two loads the figures count as they are; one that is not known does not hold.
func TestChangeOfLoads(t *testing.T) {
	one, two, none := 1.0, 1.2, 0.0
	f := report.Findings{Figures: []report.Medians{{Figure: "p99", A: &one, B: &two}, {Figure: "errors", A: &none, B: &none}, {Figure: "rate", A: &one}}}
	for text, want := range map[string]bool{
		"p99<21%": true, "p99 < 20.0%": false, "p99>19%": true, "p99>21%": false, "p99<-1%": false,
		"errors<1%": true, "rate>-5%": false, "p50<1%": false,
	} {
		c, err := ParseChange(text)
		if err != nil {
			t.Fatal(err)
		}
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
