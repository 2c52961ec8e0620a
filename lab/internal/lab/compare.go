package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/lab/internal/report"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// The files of a comparison, in one folder.
const (
	CompareReportFile = "compare.html"
	CompareResultFile = "compare.json"
)

// CompareSchema names the keys of compare.json and what they mean.
const CompareSchema = "cabrank.lab.compare/1"

// mostLoad is how many bytes of a load.json are read: that of a day has a few MB.
const mostLoad = 64 << 20

// Comparison is two results that may be set beside each other.
type Comparison interface {
	Document() report.Document
	// Findings are what compare.json has of it beside the files.
	Findings() report.Findings
}

// Compare reads two results: two run.json of one scenario, or two load.json. A folder
// means the one that is in it.
//
// Errors: one line that says which file is wrong, or why the two may not be compared.
func Compare(a, b string) (Comparison, error) {
	a, b = resultFile(a), resultFile(b)
	left, right, err := both(a, b, schemaOf)
	if err != nil {
		return nil, err
	}
	switch {
	case left != right:
		return nil, fmt.Errorf("%s is %s and %s is %s: compare two of a kind", a, kindOf(left), b, kindOf(right))
	case left == result.Schema:
		return compareRuns(a, b)
	}
	return compareLoads(a, b)
}

func compareRuns(a, b string) (Comparison, error) {
	left, right, err := both(a, b, result.Read)
	if err != nil {
		return nil, err
	}
	t := report.Two{NameA: a, NameB: b, A: left, B: right}
	return t, t.Check()
}

func compareLoads(a, b string) (Comparison, error) {
	left, right, err := both(a, b, readLoad)
	if err != nil {
		return nil, err
	}
	t := report.TwoLoads{NameA: a, NameB: b, A: left, B: right}
	return t, t.Check()
}

// both reads two files.
func both[T any](a, b string, read func(path string) (T, error)) (left, right T, err error) {
	if left, err = read(a); err == nil {
		right, err = read(b)
	}
	return left, right, err
}

// resultFile is the result that a path means: in a folder the run, or else the load.
func resultFile(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return path
	}
	if run := filepath.Join(path, result.RunFile); exists(run) {
		return run
	}
	if load := filepath.Join(path, ResultFile); exists(load) {
		return load
	}
	return filepath.Join(path, result.RunFile) // whose error is told
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// schemaOf reads what kind of result a file is.
func schemaOf(path string) (string, error) {
	text, err := result.ReadFile(path, mostLoad)
	if err != nil {
		return "", err
	}
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return "", fmt.Errorf("%s is no result of the lab: %w", path, err)
	}
	if head.Schema != result.Schema && head.Schema != ResultSchema {
		return "", fmt.Errorf("%s is no result of a run or a load: its schema is %.60q, want %s or %s", path, head.Schema, result.Schema, ResultSchema)
	}
	return head.Schema, nil
}

func kindOf(schema string) string {
	if schema == result.Schema {
		return "a run of a scenario"
	}
	return "a load"
}

func readLoad(path string) (report.Load, error) {
	var l report.Load
	text, err := result.ReadFile(path, mostLoad)
	if err != nil {
		return l, err
	}
	var r Result
	if err := json.Unmarshal(text, &r); err != nil {
		return l, fmt.Errorf("%s is no result of a load: %w", path, err)
	}
	if r.Record == nil {
		return l, fmt.Errorf("%s is no result of a load: it has no record", path)
	}
	return r.Load, nil
}

// SaveComparison writes the report and the findings into a folder, as Save does.
func SaveComparison(folder string, c Comparison) error {
	text, err := ComparisonJSON(c)
	if err != nil {
		return err
	}
	return errors.Join(
		result.Replace(filepath.Join(folder, CompareResultFile), text),
		result.Replace(filepath.Join(folder, CompareReportFile), c.Document().HTML()),
	)
}

// ComparisonJSON is what CompareResultFile has of a comparison.
func ComparisonJSON(c Comparison) ([]byte, error) {
	return resultOf(struct {
		Schema string `json:"schema"`
		report.Findings
	}{CompareSchema, c.Findings()})
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
