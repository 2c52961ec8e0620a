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
		content, err := os.ReadFile(filepath.Join(unpacked(t, "darwin", arch), "cabrank"))
		testkit.Must(t, err)
		program, err := macho.NewFile(strings.NewReader(string(content)))
		if err != nil || program.Cpu != cpu || program.Type != macho.TypeExec {
			t.Fatalf("%s: no program for %v: %v", arch, cpu, err)
		}
		if !strings.Contains(string(content), version(t)) {
			t.Errorf("%s: the version %s is not in it", arch, version(t))
		}
		for _, load := range program.Loads { // macOS on arm64 starts nothing that is not signed
			if raw := load.Raw(); len(raw) > 3 && program.ByteOrder.Uint32(raw) == 0x1d {
				arch = ""
			}
		}
		if arch == "arm64" {
			t.Errorf("%s: there is no signature (LC_CODE_SIGNATURE)", arch)
		}
	}
}

// The manual is without a fault for who sets it, has a page for each command that there
// is, and each flag of `cabrank run`.
func TestManual(t *testing.T) {
	folder := unpacked(t, runtime.GOOS, runtime.GOARCH)
	pages, err := filepath.Glob(filepath.Join(folder, "share", "man", "man[15]", "*"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages, want one for each command and cabrank.yml(5): %v", len(pages), err)
	}
	set := exec.Command("groff", append([]string{"-man", "-Tutf8", "-ww", "-z"}, pages...)...)
	if out, err := set.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("groff: %v: %s", err, out)
	}
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
		if strings.HasPrefix(word, "--") && !strings.Contains(page, word) {
			t.Errorf("%s is in --help and not on the page\n%s", word, page)
		}
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
	if out, err := complete.Output(); err != nil || !strings.HasPrefix(string(out), "upgrade") {
		t.Errorf("bash completes upg by %q (%v)", out, err)
	}
	for name, want := range map[string]string{"zsh/site-functions/_cabrank": "#compdef cabrank", "fish/vendor_completions.d/cabrank.fish": "# fish completion for cabrank"} {
		script, err := os.ReadFile(filepath.Join(scripts, name))
		if err != nil || !strings.HasPrefix(string(script), want) {
			t.Errorf("%s does not begin with %q (%v)", name, want, err)
		}
	}
}

// The sums are those of the files, and all files have one.
func TestChecksums(t *testing.T) {
	sums, err := os.ReadFile(dist(t, "SHA256SUMS"))
	testkit.Must(t, err)
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(dist(t, "SHA256SUMS")), "*"))
	for _, name := range files {
		content, err := os.ReadFile(name)
		testkit.Must(t, err)
		line := fmt.Sprintf("%x  %s\n", sha256.Sum256(content), filepath.Base(name))
		if filepath.Base(name) != "SHA256SUMS" && !strings.Contains(string(sums), line) {
			t.Errorf("SHA256SUMS has no line %s", line)
		}
	}
}
