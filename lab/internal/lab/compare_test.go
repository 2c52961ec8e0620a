package lab_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/lab"
	"github.com/cabrank/cabrank/lab/test/made"
)

// A comparison is written beside nothing else, and what is there is replaced.
func TestSaveComparison(t *testing.T) {
	run, out := t.TempDir(), t.TempDir()
	r, err := made.Save(run, made.Options{Arms: []string{"a", "b"}, Rates: []int{50}, Rounds: 2, Seconds: 2, Effect: 1, Workers: 1})
	testkit.Must(t, err)
	c, err := lab.Compare(run, filepath.Join(run, "run.json"))
	testkit.Must(t, err)
	for range 2 {
		testkit.Must(t, lab.OfComparison(c).Save(out))
	}
	files, err := filepath.Glob(filepath.Join(out, "*"))
	testkit.Want(t, err == nil && len(files) == 2, "%v %v", files, err)
	testkit.Want(t, strings.Contains(string(lab.RunReport(run, r).HTML()), "one call in 10 takes longer"),
		"the report of the run has not read its records")
}
