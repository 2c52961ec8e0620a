//go:build real || soak

package packages_test

import (
	"crypto/sha256"
	"debug/macho"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// unpacked unpacks the archive of a platform by the tar of the machine and returns the
// folder that was in it.
func unpacked(t *testing.T, system, arch string) string {
	t.Helper()
	archive := dist(t, "cabrank-[0-9]*-"+system+"-"+arch+".tar.gz")
	home := t.TempDir()
	must(t, exec.Command("tar", "-xzf", archive, "-C", home))
	return filepath.Join(home, strings.TrimSuffix(filepath.Base(archive), ".tar.gz"))
}

// The archive of this platform.
func TestTarball(t *testing.T) {
	folder := unpacked(t, runtime.GOOS, runtime.GOARCH)
	works(t, func(args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(folder, "cabrank"), args...)
		cmd.Dir, cmd.Env = folder, []string{"HOME=" + folder, "PATH=/usr/bin:/bin"}
		return cmd
	})
}

// There is no macOS here: its programs are judged by what is in them.
func TestTarballOfMacOS(t *testing.T) {
	for arch, cpu := range map[string]macho.Cpu{"amd64": macho.CpuAmd64, "arm64": macho.CpuArm64} {
		content := testkit.ReadFile(t, filepath.Join(unpacked(t, "darwin", arch), "cabrank"))
		program, err := macho.NewFile(strings.NewReader(string(content)))
		testkit.Need(t, err == nil && program.Cpu == cpu && program.Type == macho.TypeExec, "%s: no program for %v: %v", arch, cpu, err)
		testkit.Want(t, strings.Contains(string(content), version(t)), "%s: the version %s is not in it", arch, version(t))
		for _, load := range program.Loads { // macOS on arm64 starts nothing that is not signed
			if raw := load.Raw(); len(raw) > 3 && program.ByteOrder.Uint32(raw) == 0x1d {
				arch = ""
			}
		}
		testkit.Want(t, arch != "arm64", "%s: there is no signature (LC_CODE_SIGNATURE)", arch)
	}
}

// The manual is without a fault for who sets it, has a page for each command that there
// is, and each flag of `cabrank run`.
func TestManual(t *testing.T) {
	folder := unpacked(t, runtime.GOOS, runtime.GOARCH)
	pages, err := filepath.Glob(filepath.Join(folder, "share", "man", "man[15]", "*"))
	testkit.Need(t, err == nil && len(pages) >= 20, "%d pages, want one for each command and cabrank.yml(5): %v", len(pages), err)
	set := exec.Command("groff", append([]string{"-man", "-Tutf8", "-ww", "-z"}, pages...)...)
	out, err := set.CombinedOutput()
	testkit.Want(t, err == nil && len(out) == 0, "groff: %v: %s", err, out)
	shown, err := exec.Command("groff", "-man", "-Tascii", "-P-c", "-rLL=200n", filepath.Join(folder, "share", "man", "man1", "cabrank-run.1")).Output()
	testkit.Must(t, err)
	page := string(shown)
	for i := len(page) - 1; i > 0; i-- { // bold is a letter, a step back, and the letter again
		if page[i] == '\b' {
			page = page[:i-1] + page[i+1:]
		}
	}
	help, err := exec.Command(filepath.Join(folder, "cabrank"), "run", "--help").Output()
	testkit.Must(t, err)
	for word := range strings.FieldsSeq(string(help)) {
		testkit.Want(t, !strings.HasPrefix(word, "--") || strings.Contains(page, word),
			"%s is in --help and not on the page\n%s", word, page)
	}
}

// bash takes its script and completes a command by it. Those of fish and zsh are by the
// same library; that they are theirs shows their first words.
func TestCompletion(t *testing.T) {
	folder := unpacked(t, runtime.GOOS, runtime.GOARCH)
	scripts := filepath.Join(folder, "share")
	const ask = `_get_comp_words_by_ref() { cur=upg prev=cabrank words=(cabrank upg) cword=1; }
. "$1"; COMP_TYPE=9 COMP_LINE="cabrank upg" COMP_POINT=11; __start_cabrank; echo "${COMPREPLY[@]}"`
	complete := exec.Command("bash", "-c", ask, "bash", filepath.Join(scripts, "bash-completion", "completions", "cabrank"))
	complete.Env = []string{"PATH=" + folder + ":/usr/bin:/bin"}
	out, err := complete.Output()
	testkit.Want(t, err == nil && strings.HasPrefix(string(out), "upgrade"), "bash completes upg by %q (%v)", out, err)
	for name, want := range map[string]string{"zsh/site-functions/_cabrank": "#compdef cabrank", "fish/vendor_completions.d/cabrank.fish": "# fish completion for cabrank"} {
		script, err := os.ReadFile(filepath.Join(scripts, name))
		testkit.Want(t, err == nil && strings.HasPrefix(string(script), want), "%s does not begin with %q (%v)", name, want, err)
	}
}

// The sums are those of the files, and all files have one.
func TestChecksums(t *testing.T) {
	sums := testkit.ReadFile(t, dist(t, "SHA256SUMS"))
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(dist(t, "SHA256SUMS")), "*"))
	for _, name := range files {
		content := testkit.ReadFile(t, name)
		line := fmt.Sprintf("%x  %s\n", sha256.Sum256(content), filepath.Base(name))
		testkit.Want(t, filepath.Base(name) == "SHA256SUMS" || strings.Contains(string(sums), line), "SHA256SUMS has no line %s", line)
	}
}
