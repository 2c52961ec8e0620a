//go:build soak

package lab_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cabrank/cabrank/test/real/harness"
)

// The same of the servers that `make lab-deps` builds, where their toolchains are.
func TestLanguagesBuiltApart(t *testing.T) {
	for name, built := range map[string]string{"java": "java/echo.jar", "rust": "rust/release/echo"} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(harness.Root(t), ".deps", "echo", built)); err != nil {
				t.Skipf("languages: %s is left out; make lab-deps says why", name)
			}
			languages(t, []string{name})
		})
	}
}
