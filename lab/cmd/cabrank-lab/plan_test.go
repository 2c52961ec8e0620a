package main

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/goal"
	"github.com/cabrank/cabrank/lab/internal/lab"
	"github.com/cabrank/cabrank/lab/internal/report"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// madeUp is a service that answers at once.
type madeUp struct{}

func (madeUp) String() string                                    { return "a.B/C" }
func (madeUp) Call(context.Context, traffic.Call) traffic.Answer { return traffic.Answer{} }

func (s madeUp) Run(ctx context.Context, plan traffic.Plan, _ func(traffic.Live)) (report.Load, error) {
	record, err := traffic.New(plan, s).Run(ctx)
	return report.Load{Method: s.String(), Record: record}, err
}

func (madeUp) Find(_ context.Context, _ traffic.Options, _ float64, _ goal.Thresholds, told func(goal.Step)) (goal.Result, error) {
	told(goal.Step{Rate: 7})
	return goal.Result{Holds: 7}, nil
}

// With --json stdout has the result alone, whatever else is told.
func TestJSON(t *testing.T) {
	for _, find := range []bool{false, true} {
		f := loadPlan{json: true, find: find, Options: traffic.Options{Callers: 1, Duration: 50 * time.Millisecond}, out: t.TempDir()}
		plan, err := f.Plan()
		testkit.Must(t, err)
		var stdout, stderr bytes.Buffer
		err = f.make(t.Context(), madeUp{}, plan, &stdout, &stderr)
		testkit.Want(t, err == nil && stderr.Len() != 0, "%v, %s", err, &stderr)
		var load lab.Result
		var search goal.Result
		if find {
			err = json.Unmarshal(stdout.Bytes(), &search)
		} else {
			err = json.Unmarshal(stdout.Bytes(), &load)
		}
		testkit.Want(t, err == nil && find == (search.Holds == 7) && find != (load.Schema == lab.ResultSchema),
			"find %v: %v\n%s", find, err, &stdout)
	}
}

// What was typed can be typed again.
func TestTyped(t *testing.T) {
	got := typed([]string{"/usr/bin/cabrank-lab", "run", "languages", "--arm", "ruby x2", "--set", "a=1"})
	want := `cabrank-lab run languages --arm "ruby x2" --set a=1`
	testkit.Want(t, got == want, "got %s, want %s", got, want)
}
