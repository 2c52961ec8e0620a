//go:build real || soak

// Package languages_test holds the binary in front of workers in Ruby, Python, Node
// and Go to what users of each language see.
package languages_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Workers and clients understand each other without cabrank: a failure behind
// it is then its own.
func TestLanguagesDirect(t *testing.T) {
	for _, lang := range harness.Langs() {
		t.Run(lang+" worker", func(t *testing.T) {
			var loose []string
			if lang == "go" {
				// At a deadline grpc-go resets the stream with CANCEL; other clients
				// may see that before their own clock says DEADLINE_EXCEEDED.
				loose = []string{"deadline"}
			}
			runLangClients(t, harness.StartLangWorker(t, lang), loose...)
		})
	}
}

// The literal command line of each README works, and clients of every language
// see through cabrank what they see without it: all four kinds of call, error
// details, metadata in headers and trailers, deadlines and cancels.
func TestLanguagesBehindCabrank(t *testing.T) {
	for _, lang := range harness.Langs() {
		t.Run(lang+" worker", func(t *testing.T) {
			example := harness.ReadLangExample(t, lang)
			args := slices.Concat(example.Flags, []string{"--"}, example.Worker)
			c := harness.StartCabrankEnv(t, harness.LangEnv(t), args...)
			c.WaitReady(harness.LangBound)
			runLangClients(t, c.Addr)
		})
	}
}

// The same workers on unix sockets (R19); one client is enough to tell.
func TestLanguagesOnUnixSockets(t *testing.T) {
	for _, lang := range harness.Langs() {
		t.Run(lang+" worker", func(t *testing.T) {
			c := harness.StartLangCabrank(t, lang, "--workers", "2", "--transport", "unix")
			runLangClient(t, "go", c.Addr)
			c.Stop()
		})
	}
}

// runLangClients runs the client of every language, one after the other.
func runLangClients(t *testing.T, addr string, loose ...string) {
	t.Helper()
	for _, lang := range harness.Langs() {
		t.Run(lang+" client", func(t *testing.T) { runLangClient(t, lang, addr, loose...) })
	}
}

// runLangClient runs one client and compares what it prints, one line of JSON
// per case, with testdata/expected.json, except for the loose cases.
func runLangClient(t *testing.T, lang, addr string, loose ...string) {
	t.Helper()
	command := slices.Clone(harness.ReadLangExample(t, lang).Client)
	command[len(command)-1] = addr
	client := harness.StartLangProcess(t, nil, command)
	client.WantExit(harness.LangBound, 0)
	got := map[string]any{}
	for line := range strings.Lines(client.Output()) {
		var result struct {
			Case string `json:"case"`
			Got  any    `json:"got"`
		}
		err := json.Unmarshal([]byte(line), &result)
		testkit.Need(t, err == nil, "line %q of the client: %v", line, err)
		got[result.Case] = result.Got
	}
	want := expectedOfLangs(t)
	for _, name := range loose {
		want[name] = got[name]
	}
	compareLang(t, got, want)
}

func compareLang(t *testing.T, got, want map[string]any) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		testkit.Want(t, reflect.DeepEqual(got[name], want[name]), "%s: got %v, want %v", name, got[name], want[name])
	}
	testkit.Want(t, len(got) <= len(want), "more cases than testdata/expected.json has: %v", slices.Sorted(maps.Keys(got)))
}

func expectedOfLangs(t *testing.T) map[string]any {
	t.Helper()
	text := testkit.ReadFile(t, "testdata/expected.json")
	var expected map[string]any
	testkit.Must(t, json.Unmarshal(text, &expected))
	return expected
}

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
	testkit.Want(t, p.ExitCode(harness.Patience) != 0, "it goes on without the package")
	const want = "install-deps: run this line, then again what you ran: sudo apt-get install -y --no-install-recommends gcc"
	if got := p.Log(); !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 1 || p.Output() != "" {
		t.Errorf("stderr is %q, stdout %q, want one line: %s", got, p.Output(), want)
	}
}

func TestMain(m *testing.M) { harness.Main(m) }
