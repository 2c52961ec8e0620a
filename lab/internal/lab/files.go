package lab

import (
	"encoding/json"
	"path/filepath"

	"github.com/cabrank/cabrank/lab/internal/goal"
	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/report"
	"github.com/cabrank/cabrank/lab/internal/result"
)

// The files of a load, in one folder.
const (
	ReportFile     = "report.html"
	ResultFile     = "load.json"
	HistogramsFile = "load.hlog"
	SearchFile     = "find.json"
)

// Result is what load.json holds; docs/lab-load.md has its keys.
type Result struct {
	Schema string `json:"schema"` // ResultSchema
	report.Load
}

// ResultSchema names the keys of Result and what they mean.
const ResultSchema = "cabrank.lab.load/1"

// Save writes the report, the result and the histograms of a load into a folder. Files
// of the same names are replaced; one that cannot be written leaves the old one.
func Save(folder string, l report.Load) error {
	figures, err := JSON(l)
	if err != nil {
		return err
	}
	histograms, err := histogramLog(l)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{HistogramsFile, histograms}, {ResultFile, figures}, {ReportFile, l.Document().HTML()}} {
		if err := result.Replace(filepath.Join(folder, f.name), f.data); err != nil {
			return err
		}
	}
	return nil
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

// histogramLog is the histogram log of a load, with a line for each kind of end.
func histogramLog(l report.Load) ([]byte, error) {
	r := l.Record
	return latency.Log(l.Began, r.Counted, []latency.Tagged{
		{Tag: "all", Latencies: r.Latency()}, {Tag: "answered", Latencies: r.Calls.Answered}, {Tag: "failed", Latencies: r.Calls.Failed},
		{Tag: "unsent", Latencies: r.Unsent.Ages}, {Tag: "open", Latencies: r.Open}, {Tag: "first", Latencies: r.First}, {Tag: "lag", Latencies: r.Lag},
	})
}
