//go:build real || soak

package lab_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/trial"
	"github.com/cabrank/cabrank/test/real/harness"
)

// write writes a scenario into a file of its own.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.yml")
	testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// refused starts a run that says in a last line why it does not begin, and leaves nothing.
func refused(t *testing.T, env, args []string, says ...string) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "out")
	p := harness.StartProcess(t, env, harness.LabBinary(t), append(append([]string{"run"}, args...), "--out", folder)...)
	p.WantExit(harness.Patience, 2)
	lines := strings.Split(strings.TrimSpace(p.Log()), "\n")
	for _, text := range says {
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, "cabrank-lab: ") || !strings.Contains(last, text) || len(lines) > 2 {
			t.Errorf("%q, want %s", p.Log(), text)
		}
	}
	if _, err := os.Stat(folder); err == nil {
		t.Errorf("%s was left", folder)
	}
	p.WaitNoneLeft(harness.Patience)
}

// tryOut runs a scenario once, by the code that the program runs it with.
func tryOut(t *testing.T, s *scenario.Scenario) (done *result.Run, folder string) {
	t.Helper()
	s.Rounds, s.Primary, s.Secondary = 1, nil, nil
	both, folder := programs(t), filepath.Join(t.TempDir(), s.Name)
	done, err := trial.Run(t.Context(), trial.Options{
		Scenario: s, Folder: folder, Version: "test", Agent: []string{both.Lab, "agent"}, Hire: trial.Hire, Start: trial.Rigs(both, s),
	})
	testkit.Must(t, err)
	return done, folder
}

func startRun(t *testing.T, args ...string) *harness.Process {
	t.Helper()
	return harness.StartProcess(t, nil, harness.LabBinary(t), append([]string{"run"}, args...)...)
}
