//go:build real || soak

package lab_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/lab"
	"github.com/cabrank/cabrank/lab/test/made"
	"github.com/cabrank/cabrank/test/real/harness"
)

// open shows a file and returns what the page became, and what the console said.
func open(t *testing.T, path string, more ...string) (page, console string) {
	t.Helper()
	// What is opened is ours: the browser may do without its sandbox, which root has not.
	args := append([]string{
		"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr",
		"--user-data-dir=" + t.TempDir(), "--dump-dom",
	}, more...)
	p := harness.StartProcess(t, nil, harness.Browser(t), append(args, "file://"+path)...)
	p.WantExit(harness.Patience, 0)
	var said []string
	for line := range strings.Lines(p.Log()) {
		if strings.Contains(line, ":CONSOLE") {
			said = append(said, line)
		}
	}
	return p.Output(), strings.Join(said, "")
}

// measured opens all that is folded, and complains where a page scrolls sideways.
const measured = `<script>document.querySelectorAll("details").forEach(d => d.open = true)
if (document.documentElement.scrollWidth > document.documentElement.clientWidth) console.error("the page is wider than the screen")</script>`

// The pages of a run and of a comparison are shown by a browser without an error and as
// wide as the screen, for wide and narrow ones, light and dark.
func TestPagesInBrowser(t *testing.T) {
	dir := t.TempDir()
	run, err := made.Save(dir, made.Options{
		Arms: []string{"round-robin", "cabrank"}, Rates: []int{40, 80}, Rounds: 2, Seconds: 10, Effect: 0.8, Workers: 3, Pause: true,
	})
	testkit.Must(t, err)
	text := lab.RunReport(dir, run).HTML()
	testkit.Must(t, os.WriteFile(filepath.Join(dir, lab.ReportFile), text, 0o600))
	comparison, err := lab.Compare(dir, dir)
	testkit.Must(t, err)
	testkit.Must(t, lab.OfComparison(comparison).Save(dir))
	for name, title := range map[string]string{lab.ReportFile: "<h1>made-up: Figures that nobody measured</h1>", lab.CompareReportFile: "<h1>Two runs of made-up</h1>"} {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_WRONLY, 0)
		testkit.Must(t, err)
		_, err = f.WriteString(measured)
		testkit.Need(t, err == nil && f.Close() == nil, "%v", err)
		for _, screen := range [][]string{{"--window-size=1280,1000"}, {"--window-size=390,800", "--blink-settings=preferredColorScheme=0"}} {
			page, console := open(t, filepath.Join(dir, name), screen...)
			testkit.Want(t, console == "" && strings.Contains(page, title) && strings.Contains(page, "</svg>"),
				"%s at %v: the console says %q, %d bytes are shown", name, screen, console, len(page))
		}
	}
}

// An error in a page would be seen.
func TestBrowserTellsErrors(t *testing.T) {
	path := harness.WriteFile(t, "bad.html", "<!doctype html><script>missing()</script>")
	_, console := open(t, path)
	testkit.Want(t, strings.Contains(console, "missing is not defined"), "the console says %q", console)
}
