//go:build real || soak

package lab_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/test/real/harness"
)

// someStrategies writes the scenario with some of its arms in its short form.
func someStrategies(t *testing.T, arms ...string) (file string) {
	t.Helper()
	text, err := scenario.Text("strategies")
	testkit.Must(t, err)
	whole := string(text)
	short := strings.Replace(whole, "\nquick:\n", "\nquick:\n  loads: [50 requests]\n  arms: [\""+strings.Join(arms, `", "`)+"\"]\n", 1)
	testkit.Need(t, short != whole, "strategies.yml has no line quick:")
	return write(t, short)
}

// withPython is an environment with a PATH that begins with a folder, and temporary files
// in one of its own, of which nothing may be left at the end of the test.
func withPython(t *testing.T, path string) []string {
	t.Helper()
	temporary := harness.ShortTempDir(t) // short: a socket of cabrank is in it
	t.Cleanup(func() {
		left := harness.FilesIn(t, temporary)
		testkit.Want(t, len(left) == 0, "left in the folder for temporary files: %v", left)
	})
	return []string{"TMPDIR=" + temporary, "PATH=" + path + string(filepath.ListSeparator) + os.Getenv("PATH")}
}

// Every combination of threads and asyncio runs behind a name and behind cabrank, by the
// binary alone but for Python's packages: 50 requests of four calls each.
func TestStrategies(t *testing.T) {
	venv := filepath.Dir(harness.Built(t, filepath.Join(harness.Root(t), ".deps", "fibonacci", "bin", "python3"), "scripts/install-deps.sh workers"))
	arms := []string{"dns, 1 thread", "cabrank, 5 threads", "dns, asyncio", "cabrank, asyncio"}
	out := filepath.Join(t.TempDir(), "out")
	p := harness.StartProcess(t, withPython(t, venv), harness.LabBinary(t), "run", someStrategies(t, arms...), "--quick", "--set", "iterations=4", "--out", out)
	p.WantExit(4*time.Minute, 0, "strategies: 4 blocks, about ")
	run, err := result.Read(out)
	testkit.Must(t, err)
	testkit.Want(t, strings.HasPrefix(run.Text, "# ran with iterations=4\n"), "the text begins with %.60q", run.Text)
	var measured []string
	for i := range run.Blocks {
		b := &run.Blocks[i]
		measured = append(measured, b.Arm)
		calls := int64(0)
		for _, n := range b.Workers {
			calls += n
		}
		if b.Figures["total"] <= 0 || b.Figures["errors"] != 0 || calls != 200 || len(b.Workers) != 3 || b.Figures["cpu_gateway"] <= 0 {
			t.Errorf("%s: %v, workers %v", b.Arm, b.Figures, b.Workers)
		}
	}
	slices.Sort(measured)
	slices.Sort(arms)
	testkit.Want(t, slices.Equal(measured, arms), "measured: %v", measured)
	if info, err := os.Stat(filepath.Join(out, "report.html")); err != nil || info.Size() > 1<<20 {
		t.Errorf("the report: %v, %v", info, err)
	}
}

// Without the packages it is told in a line what to install, and nothing is left.
func TestStrategiesWithoutPackages(t *testing.T) {
	bare := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(bare, "python3"), []byte("#!/bin/sh\nexit 1\n"), 0o700))
	refused(t, withPython(t, bare), []string{someStrategies(t, "dns, 1 thread", "cabrank, 1 thread"), "--quick"}, "pip install grpcio")
}
