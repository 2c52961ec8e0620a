//go:build real || soak

package lab_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// write writes a scenario into a file of its own.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.yml")
	testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func startRun(t *testing.T, args ...string) *harness.Process {
	t.Helper()
	return harness.StartProcess(t, nil, harness.LabBinary(t), append([]string{"run"}, args...)...)
}
