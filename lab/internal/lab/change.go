package lab

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/lab/internal/report"
	"github.com/cabrank/cabrank/lab/internal/result"
)

// Change is a threshold of a comparison: how far B may be from A in a figure.
type Change struct {
	text, figure string
	least        bool    // at least, in place of at most
	bound        float64 // of B over A
}

// ParseChange reads a threshold such as p99<10%: B is less than 10 % above A. rate>-5%
// bounds the other side.
//
// Errors: one line that says what is wanted.
func ParseChange(text string) (Change, error) {
	c := Change{text: text}
	at := strings.IndexAny(text, "<>")
	if at > 0 {
		percent, isPercent := strings.CutSuffix(strings.TrimSpace(text[at+1:]), "%")
		n, err := strconv.ParseFloat(percent, 64)
		_, known := result.Known(strings.TrimSpace(text[:at]))
		if isPercent && err == nil && known && n >= -100 && n <= 1e6 {
			c.figure, c.least, c.bound = strings.TrimSpace(text[:at]), text[at] == '>', 1+n/100
			return c, nil
		}
	}
	return c, fmt.Errorf("--fail %.60q: want a figure and how far B may be from A, such as p99<10%% or rate>-5%%", text)
}

// Judge holds a comparison against the threshold: every arm and load at which the figure is
// tested, by the whole interval of its verdict; of two loads, which have none, by the
// figures as they are. It says so in a line each. What cannot be told does not hold.
func (c Change) Judge(f report.Findings) (lines []string, held bool) {
	held = true
	say := func(where string, low, high float64) {
		verdict := "held"
		if !(c.least && low > c.bound || !c.least && high < c.bound) { // NaN does not hold
			verdict, held = "missed", false
		}
		lines = append(lines, fmt.Sprintf("%s: %s%s, B is %.3g to %.3g times A", c.text, verdict, where, low, high))
	}
	for _, t := range f.Tested {
		switch {
		case t.Figure != c.figure:
		case t.Withheld != "" || t.Method == "":
			held = false
			lines = append(lines, fmt.Sprintf("%s: not judged at %s, %s: there is no verdict", c.text, t.Load, t.Arm))
		default:
			say(fmt.Sprintf(" at %s, %s", t.Load, t.Arm), t.Ratio.Low, t.Ratio.High)
		}
	}
	for _, m := range f.Figures {
		if m.Load == "" && m.Figure == c.figure && m.A != nil && m.B != nil {
			ratio := *m.B / *m.A
			if *m.A == *m.B { // 0 and 0
				ratio = 1
			}
			say("", ratio, ratio)
		}
	}
	if len(lines) == 0 {
		return []string{fmt.Sprintf("%s: not judged, the figure is not compared", c.text)}, false
	}
	return lines, held
}
