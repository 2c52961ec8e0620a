//go:build real || soak

package packages_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Every example of docs/install.md does what the page says, typed as it stands there.
func TestInstallPage(t *testing.T) {
	page := filepath.Join(harness.Root(t), "docs", "install.md")
	for _, e := range readPage(t, page) {
		t.Run(e.heading, func(t *testing.T) { e.play(t) })
	}
}

// The runner itself, on a page of its own: what it types, waits for and compares.
func TestTypedPage(t *testing.T) {
	for _, e := range readPage(t, filepath.Join("testdata", "page.md")) {
		t.Run(e.heading, func(t *testing.T) { e.play(t) })
	}
}

// play types an example on a machine of its own.
func (e example) play(t *testing.T) {
	t.Helper()
	var m *machine
	if strings.Contains(e.text(), "\nsystemctl ") {
		m = startSystemd(t, e.packages(t)...).machine
	} else {
		m = startMachine(t, e.packages(t))
	}
	c := m.open()
	if strings.Contains(e.text(), `"@grpc/grpc-js":`) { // of a package.json: npm finds it installed, for it reaches nobody
		must(t, m.command("cp", "-r", "/node_modules", "."))
	}
	var running []func()
	for _, b := range e.blocks {
		if b.path != "" {
			m.write(b.path, b.content)
		}
		if c == nil && len(b.steps) > 0 {
			c = m.open()
		}
		for i, s := range b.steps {
			if b.running && i == len(b.steps)-1 {
				c.start(s)
				running = append(running, func(c *terminal) func() { return func() { c.terminate(s.command) } }(c))
				c = nil
				break
			}
			unjudged := i+1 < len(b.steps) && b.steps[i+1].command == "echo $?"
			c.do(s, unjudged)
		}
		if t.Failed() {
			return
		}
	}
	for _, stop := range running {
		stop()
	}
	m.wantNothingLeft()
}

// packages returns the files of dist/ that the example names.
func (e example) packages(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(harness.Root(t), "dist", "*"))
	testkit.Need(t, err == nil && len(all) != 0, "dist/ has %d files, %v: run 'make packages' first", len(all), err)
	var named []string
	text := e.text()
	for _, name := range all {
		if strings.Contains(text, filepath.Base(name)) {
			named = append(named, name)
		}
	}
	return named
}

// do types a command, waits for its end, and compares.
func (c *terminal) do(s step, unjudged bool) {
	c.t.Helper()
	c.enter(s.command)
	text, status := c.result(s.command, typingBound)
	testkit.Want(c.t, status == 0 || unjudged, "$ %s\nended by %d, want 0; it printed:\n%s", s.command, status, text)
	if line := s.missing(text); line != "" {
		c.t.Errorf("$ %s\nprinted no line, or not in this place: %s\nbut:\n%s", s.command, line, text)
	}
}

// start types a command that goes on, and waits for the lines that it has to print.
func (c *terminal) start(s step) {
	c.t.Helper()
	c.enter(s.command)
	testkit.Eventually(c.t, typingBound, "what is printed by: "+s.command, func() bool {
		text, status := c.printed()
		testkit.Need(c.t, status < 0, "$ %s\nended by %d, but has to go on; it printed:\n%s", s.command, status, text)
		return s.missing(text) == ""
	})
}

// What is compared is what stays on the screen, in the order of the page.
func TestShownLines(t *testing.T) {
	printed := shown("\x1b[1mone\x1b[0m\r\ntwo\rthree\x1b[2K\r\n\x1b[1G\x1b[0Kfour\r\n")
	want := "one\nthree\nfour\n"
	testkit.Want(t, printed == want, "it shows %q, want %q", printed, want)
	for line, prints := range map[string][]string{
		"":     {"one", "…r"},
		"five": {"t…e", "five"},
		"one":  {"four", "one"},
		"thr":  {"thr"},
	} {
		testkit.Equal(t, (step{prints: prints}).missing(printed), line, "what it misses of %q", prints)
	}
}
