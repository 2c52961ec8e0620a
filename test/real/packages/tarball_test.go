//go:build real

package packages_test

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The archive of this platform, unpacked by the tar of the machine.
func TestTarball(t *testing.T) {
	archive := dist(t, "cabrank-*-"+runtime.GOOS+"-"+runtime.GOARCH+".tar.gz")
	home := t.TempDir()
	if out, err := exec.Command("tar", "-xzf", archive, "-C", home).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v: %s", err, out)
	}
	program := filepath.Join(home, strings.TrimSuffix(filepath.Base(archive), ".tar.gz"), "cabrank")
	works(t, func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "PATH=/usr/bin:/bin"}
		return cmd
	})
}
