package lab_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/lab"
	"github.com/cabrank/cabrank/lab/test/made"
)

// What cannot be compared is refused in one line that names the file.
func TestCompareRefused(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	if _, err := made.Save(run, made.Options{Arms: []string{"a"}, Rates: []int{10}, Rounds: 1, Seconds: 1, Workers: 1}); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	load := write("load.json", `{"schema":"cabrank.lab.load/2"}`)
	broken := write("broken.json", `{"schema":`)
	for _, tc := range []struct{ a, b, want string }{
		{filepath.Join(dir, "none"), run, "none: no such file"},
		{t.TempDir(), run, "run.json: no such file"},
		{run, broken, "broken.json is no result of a run: unexpected end"},
		{run, load, `load.json: schema "cabrank.lab.load/2": want cabrank.lab.run/1`},
	} {
		_, err := lab.Compare(tc.a, tc.b)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s", err, tc.want)
		}
	}
}

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
	if err != nil || len(files) != 2 {
		t.Errorf("%v %v", files, err)
	}
	if text := lab.RunReport(run, r).HTML(); !strings.Contains(string(text), "one call in 10 takes longer") {
		t.Error("the report of the run has not read its records")
	}
}
