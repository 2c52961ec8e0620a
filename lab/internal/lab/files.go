package lab

import (
	"encoding/json"
	"errors"
	"path/filepath"

	"github.com/cabrank/cabrank/lab/internal/goal"
	"github.com/cabrank/cabrank/lab/internal/report"
	"github.com/cabrank/cabrank/lab/internal/result"
)

// The files of a load, in one folder.
const (
	ReportFile = "report.html"
	ResultFile = "load.json"
	SearchFile = "find.json"
)

// Result is what load.json holds; docs/lab-load.md has its keys.
type Result struct {
	Schema string `json:"schema"` // ResultSchema
	report.Load
}

// ResultSchema names the keys of Result and what they mean.
const ResultSchema = "cabrank.lab.load/2"

// Save writes the report and the result of a load into a folder. Files of the same names are
// replaced; one that cannot be written leaves the old one.
func Save(folder string, l report.Load) error {
	figures, err := JSON(l)
	if err != nil {
		return err
	}
	return errors.Join(
		result.Replace(filepath.Join(folder, ResultFile), figures),
		result.Replace(filepath.Join(folder, ReportFile), l.Document().HTML()),
	)
}

// JSON is what ResultFile has of a load.
func JSON(l report.Load) ([]byte, error) { return resultOf(Result{ResultSchema, l}) }

// SaveSearch writes what a search has found into a folder, as Save does.
func SaveSearch(folder string, r goal.Result) error {
	text, err := SearchJSON(r)
	if err != nil {
		return err
	}
	return result.Replace(filepath.Join(folder, SearchFile), text)
}

// SearchJSON is what SearchFile has of a search.
func SearchJSON(r goal.Result) ([]byte, error) { return resultOf(r) }

func resultOf(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", " ")
	return append(text, '\n'), err
}
