package harness

import (
	"os/exec"
	"testing"
)

// Browser returns the path of one that runs without a screen.
func Browser(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no chromium: run 'scripts/install-deps.sh workers' first")
	return ""
}
