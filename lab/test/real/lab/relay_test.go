//go:build real || soak

package lab_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/test/real/harness"
)

// shortRelay writes the scenario relay with loads of a second.
func shortRelay(t *testing.T) (file string) {
	t.Helper()
	text, err := scenario.Text("relay")
	testkit.Must(t, err)
	short := string(text)
	for pattern, by := range map[string]string{
		`stages: .*`: "stages: 1s:10", `(?s)  - rate: 100\n.*?(  - rate: 20)`: "$1", `rate: 200`: "rate: 20", `arms: \[.*`: "",
		`duration: 12s`: "duration: 1s", `warmup: 1s`: "warmup: 0s",
		`rounds: .*`: "rounds: 1", `(?s)primary:.*?\n\n`: "", `quick: \{.*`: "", `duration: 5s`: "duration: 1s",
	} {
		short = regexp.MustCompile(pattern).ReplaceAllString(short, by)
	}
	return write(t, short)
}

// Every arm of the scenario relay runs with the binary alone, and answers.
func TestRelay(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "out")
	run := harness.StartProcess(t, harness.LangEnv(t), harness.LabBinary(t), "run", shortRelay(t), "--out", folder)
	run.WantExit(5*harness.Patience, 0)
	r, err := result.Read(folder)
	testkit.Must(t, err)
	testkit.Want(t, len(r.Arms) == 6 && len(r.Blocks) == 12 && len(r.LeftOut) == 0,
		"%d arms, %d blocks, left out: %q", len(r.Arms), len(r.Blocks), r.LeftOut)
	for _, b := range r.Blocks {
		workers := 0
		for _, n := range b.Workers {
			if n > 0 {
				workers++
			}
		}
		testkit.Want(t, !b.Silent && b.Figure("rate") >= 5 && workers >= 3,
			"%s at %s: %v answers/s of %d workers, %v", b.Arm, b.Load, b.Figure("rate"), workers, b.Errors)
		if (strings.HasSuffix(b.Arm, "cabrank") || strings.HasSuffix(b.Arm, "backlog")) && b.Figure("errors") != 0 {
			t.Errorf("%s at %s: errors %v", b.Arm, b.Load, b.Errors)
		}
	}
}

// Without a language its arms are left out, with a line that says what to install; with
// none at all there is nothing to measure.
func TestRelayWithoutLanguages(t *testing.T) {
	refused(t, []string{"PATH=/nowhere"}, []string{shortRelay(t)},
		"nothing can be measured here", "gem install grpc", "python3 -m pip install grpcio grpcio-health-checking")
}
