package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

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
	left, err := schemaOf(a)
	if err != nil {
		return nil, err
	}
	right, err := schemaOf(b)
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
	t := report.Two{NameA: a, NameB: b}
	var err error
	if t.A, err = result.Read(a); err != nil {
		return nil, err
	}
	if t.B, err = result.Read(b); err != nil {
		return nil, err
	}
	return t, t.Check()
}

func compareLoads(a, b string) (Comparison, error) {
	t := report.TwoLoads{NameA: a, NameB: b}
	var err error
	if t.A, err = readLoad(a); err != nil {
		return nil, err
	}
	if t.B, err = readLoad(b); err != nil {
		return nil, err
	}
	return t, t.Check()
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
