package lab

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/lab/internal/report"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// CompareReportFile is the page of a comparison, with compare.json in one folder.
const CompareReportFile = "compare.html"

// CompareSchema names the keys of compare.json and what they mean.
const CompareSchema = "cabrank.lab.compare/2"

// Compare reads two run.json of one scenario. A folder means the one that is in it.
//
// Errors: one line that says which file is wrong, or why the two may not be compared.
func Compare(a, b string) (report.Two, error) {
	t := report.Two{NameA: result.File(a), NameB: result.File(b)}
	var err error
	if t.A, err = result.Read(a); err == nil {
		t.B, err = result.Read(b)
	}
	if err != nil {
		return t, err
	}
	return t, t.Check()
}

// OfComparison keeps a comparison.
func OfComparison(t report.Two) Kept {
	d := t.Document()
	return Kept{&d, struct {
		Schema string `json:"schema"`
		report.Findings
	}{CompareSchema, t.Findings()}, CompareReportFile, "compare.json"}
}

// RunReport is what a run has shown, whose run.json is in a folder. The raw records are
// read from there, one at a time.
func RunReport(folder string, r *result.Run) report.Document {
	return report.Run{Result: r, Record: func(b *result.Block) (*traffic.Record, error) { return result.ReadRecord(folder, b) }}.Document()
}

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
// tested, by the whole interval of its verdict. It says so in a line each. What cannot be told
// does not hold.
func (c Change) Judge(f report.Findings) (lines []string, held bool) {
	held = true
	for _, t := range f.Tested {
		switch {
		case t.Figure != c.figure:
		case t.Withheld != "" || t.Method == "":
			held = false
			lines = append(lines, fmt.Sprintf("%s: not judged at %s, %s: there is no verdict", c.text, t.Load, t.Arm))
		default:
			verdict := "held"
			if !(c.least && t.Ratio.Low > c.bound || !c.least && t.Ratio.High < c.bound) { // NaN does not hold
				verdict, held = "missed", false
			}
			lines = append(lines, fmt.Sprintf("%s: %s at %s, %s, B is %.3g to %.3g times A", c.text, verdict, t.Load, t.Arm, t.Ratio.Low, t.Ratio.High))
		}
	}
	if len(lines) == 0 {
		return []string{fmt.Sprintf("%s: not judged, the figure is not compared", c.text)}, false
	}
	return lines, held
}
