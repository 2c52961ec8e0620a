//go:build real || soak

package languages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Without root and with a package missing the checks end with the one line to
// run: they neither install as somebody else nor go on without.
func TestMissingPackageIsOneLine(t *testing.T) {
	bare := t.TempDir() // a PATH with what the script itself needs, and no compiler
	for _, name := range []string{"bash", "dirname", "uname"} {
		path, err := exec.LookPath(name)
		testkit.Must(t, err)
		testkit.Must(t, os.Symlink(path, filepath.Join(bare, name)))
	}
	for name, script := range map[string]string{"id": "echo 1000", "apt-get": "echo installed"} {
		text := "#!" + filepath.Join(bare, "bash") + "\n" + script + "\n"
		testkit.Must(t, os.WriteFile(filepath.Join(bare, name), []byte(text), 0o700))
	}
	p := harness.StartProcess(t, []string{"PATH=" + bare}, filepath.Join(harness.Root(t), "scripts", "install-deps.sh"), "race")
	if code := p.ExitCode(harness.Patience); code == 0 {
		t.Error("it goes on without the package")
	}
	const want = "install-deps: run this line, then again what you ran: sudo apt-get install -y --no-install-recommends gcc"
	if got := p.Log(); !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 1 || p.Output() != "" {
		t.Errorf("stderr is %q, stdout %q, want one line: %s", got, p.Output(), want)
	}
}
