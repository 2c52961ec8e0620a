package lab

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/cabrank/cabrank/lab/internal/goal"
	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/report"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/traffic"
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
	Schema  string    `json:"schema"` // ResultSchema
	Method  string    `json:"method"`
	Address string    `json:"address"`
	Began   time.Time `json:"began"`
	Client  []string  `json:"client"`
	Machine []string  `json:"machine"`
	Limited string    `json:"generator_limits,omitempty"`
	// Judgement is there if there were thresholds.
	Judgement *goal.Judgement `json:"judgement,omitempty"`
	Record    *traffic.Record `json:"record"`
	// Processes are those that answered, as far as they were named.
	Processes []report.Process `json:"processes,omitempty"`
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
func JSON(l report.Load) ([]byte, error) {
	return resultOf(Result{
		Schema: ResultSchema, Method: l.Method, Address: l.Address, Began: l.Began,
		Client: l.Client, Machine: l.Machine, Limited: l.Limited,
		Judgement: l.Judgement, Record: l.Record, Processes: l.Processes,
	})
}

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
	var b bytes.Buffer
	w, err := latency.NewLogWriter(&b, l.Began)
	if err != nil {
		return nil, err
	}
	r := l.Record
	for _, kind := range []struct {
		tag string
		h   *latency.Histogram
	}{
		{"all", r.Latency()}, {"answered", r.Calls.Answered}, {"failed", r.Calls.Failed},
		{"unsent", r.Unsent.Ages}, {"open", r.Open}, {"first", r.First}, {"lag", r.Lag},
	} {
		if err := w.Write(latency.Interval{Tag: kind.tag, Length: r.Counted, Latencies: kind.h}); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
