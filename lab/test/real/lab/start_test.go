//go:build real || soak

package lab_test

import (
	"testing"

	"github.com/cabrank/cabrank/test/real/harness"
)

// write writes a scenario into a file of its own.
func write(t *testing.T, text string) string {
	t.Helper()
	path := harness.WriteFile(t, "tiny.yml", text)
	return path
}

func startRun(t *testing.T, args ...string) *harness.Process {
	t.Helper()
	return harness.StartProcess(t, nil, harness.LabBinary(t), append([]string{"run"}, args...)...)
}
