package cabrank_test

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/cabrank/cabrank/internal/testkit"
)

var (
	// inlineLink matches the target of an inline link or image.
	inlineLink = regexp.MustCompile(`\]\(\s*<?([^\s)>]+)`)

	// linkDefinition matches the target of a link that is defined apart.
	linkDefinition = regexp.MustCompile(`(?m)^ {0,3}\[[^\]]+\]:\s+<?([^\s>]+)`)

	// codeSpan matches what a line quotes.
	codeSpan = regexp.MustCompile("`[^`]*`")

	// lineNumbers matches a reference that the next edit makes wrong.
	lineNumbers = regexp.MustCompile(`\.(go|rb|py|js|ts|sh|proto):\d+|#L\d+|\blines? \d+`)

	// recordName is the form of a decision record's file name.
	recordName = regexp.MustCompile(`^(\d{3})-[a-z0-9]+(-[a-z0-9]+)*\.md$`)
)

func TestLinksLeadSomewhere(t *testing.T) {
	for _, name := range sourceFiles(t, ".md") {
		for _, target := range localLinks(read(t, name)) {
			_, err := os.Stat(filepath.FromSlash(path.Join(path.Dir(name), target)))
			testkit.Want(t, err == nil, "%s links to %s, which does not exist", name, target)
		}
	}
}

// A link to a heading finds it.
func TestAnchorsLeadSomewhere(t *testing.T) {
	for _, name := range sourceFiles(t, ".md") {
		for _, m := range inlineLink.FindAllStringSubmatch(withoutCode(read(t, name)), -1) {
			file, anchor, found := strings.Cut(m[1], "#")
			if !found || strings.Contains(file, "://") || file != "" && path.Ext(file) != ".md" {
				continue
			}
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			testkit.Want(t, slices.Contains(anchors(read(t, target)), anchor),
				"%s links to #%s, which %s does not have", name, anchor, target)
		}
	}
}

// anchors are those that the headings of a document get: in lower case, with hyphens for
// spaces, and no other mark.
func anchors(text string) []string {
	var all []string
	for _, m := range regexp.MustCompile("(?m)^#+ +(.+)$").FindAllStringSubmatch(text, -1) {
		kept := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])
		all = append(all, kept)
	}
	return all
}

// localLinks returns the link targets of a document that are files of this
// tree, without their anchors.
func localLinks(text string) []string {
	text = withoutCode(text)
	found := append(inlineLink.FindAllStringSubmatch(text, -1), linkDefinition.FindAllStringSubmatch(text, -1)...)
	var targets []string
	for _, m := range found {
		target, _, _ := strings.Cut(m[1], "#")
		if target != "" && !strings.Contains(target, "://") && !strings.HasPrefix(target, "mailto:") {
			targets = append(targets, target)
		}
	}
	return targets
}

// withoutCode removes what is not read as Markdown: fenced blocks, code spans.
func withoutCode(text string) string {
	var kept strings.Builder
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			fenced = !fenced
		} else if !fenced {
			kept.WriteString(codeSpan.ReplaceAllString(line, ""))
		}
	}
	return kept.String()
}

func TestLocalLinks(t *testing.T) {
	text := "[a](x.md#part) ![b](img/y.png \"title\") [c](https://z) [d](#here)\n" +
		"[e]: ../w.md\n`[no](code.md)`\n```\n[no](fence.md)\n```\n[f](<v.md>)"
	got := strings.Join(localLinks(text), " ")
	want := "x.md img/y.png v.md ../w.md"
	testkit.Want(t, got == want, "got %q, want %q", got, want)
}

func TestDocumentsNameNoLines(t *testing.T) {
	for _, name := range sourceFiles(t, ".md") {
		if found := lineNumbers.FindString(read(t, name)); found != "" {
			t.Errorf("%s refers to %q: name the function instead, lines move", name, found)
		}
	}
}

// docs/conformance.md is the index of the tests that are named by section: all
// of them, and no other.
func TestConformanceNamesItsTests(t *testing.T) {
	tests := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	named, written := map[string]bool{}, map[string]bool{}
	protocols, _, _ := strings.Cut(read(t, "docs/conformance.md"), "\n## Chaos")
	for _, m := range tests.FindAllStringSubmatch(protocols, -1) {
		named[m[1]] = true
	}
	for _, f := range tree(t)["internal/h2"].files {
		for _, decl := range f.syntax.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				written[fn.Name.Name] = true
			}
		}
	}
	for name := range named {
		testkit.Want(t, written[name], "docs/conformance.md names %s, which internal/h2 does not have", name)
	}
	for name := range written {
		testkit.Want(t, !strings.HasPrefix(name, "TestRFC") || named[name], "docs/conformance.md does not name %s", name)
	}
}

// docs/threat-model.md promises nothing without a test: each one that it names
// is in the tree, as is each limit; and each reason to end a connection is in one of
// its tables.
func TestThreatModelNamesItsTests(t *testing.T) {
	text := read(t, "docs/threat-model.md")
	namesTests(t, "docs/threat-model.md")
	keys := read(t, "docs/configuration.md")
	for _, key := range regexp.MustCompile("`limits\\.\\w+`").FindAllString(text, -1) {
		testkit.Want(t, strings.Contains(keys, "| "+key+" |"), "docs/threat-model.md names %s, which is no key", key)
	}
	_, table, _ := strings.Cut(read(t, "docs/metrics.md"), "## Reason of an ended connection")
	reasons := regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)`").FindAllStringSubmatch(table, -1)
	testkit.Want(t, len(reasons) >= 10, "%d reasons in docs/metrics.md", len(reasons))
	for _, m := range reasons {
		if m[1] != "reason" && !strings.Contains(text, "`"+m[1]+"`") {
			t.Errorf("docs/threat-model.md does not say what %s is against", m[1])
		}
	}
}

// hasCase tells whether a script of TestWire or TestRank has a case, by the name of its test.
func hasCase(t *testing.T, test, script, name string) bool {
	t.Helper()
	text := read(t, map[string]string{"TestWire": "internal/relay/testdata/wire/", "TestRank": "internal/rank/testdata/"}[test]+script+".txtar")
	return strings.Contains(strings.ReplaceAll(text, " ", "_"), "\n--_"+name+"_--\n")
}

// namesTests holds that every test that a document names is in the tree, and returns
// how many there are.
func namesTests(t *testing.T, document string) int {
	t.Helper()
	written := map[string]bool{}
	for _, p := range tree(t) {
		for _, f := range p.files {
			for _, decl := range f.syntax.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok && f.isTest() {
					written[fn.Name.Name] = true
				}
			}
		}
	}
	// Of scripts the case is named, too.
	for _, m := range regexp.MustCompile("\\b(TestWire|TestRank)/([a-z_]+)/([^`/]+)").FindAllStringSubmatch(read(t, document), -1) {
		testkit.Want(t, hasCase(t, m[1], m[2], m[3]), "%s names %s, which does not exist", document, m[0])
	}
	named := regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z0-9]\w*`).FindAllString(read(t, document), -1)
	for _, name := range named {
		testkit.Want(t, written[name], "%s names %s, which does not exist", document, name)
	}
	return len(named)
}

// docs/why.md has a row for each of the 40 defects, with tests that exist.
func TestMovingOverNamesItsTests(t *testing.T) {
	const document = "docs/why.md"
	if n := namesTests(t, document); n < 40 {
		t.Errorf("%s names %d tests", document, n)
	}
	for n := range 40 {
		testkit.Want(t, strings.Count(read(t, document), fmt.Sprintf("\n| D%d | ", n+1)) == 1, "%s has not one row D%d", document, n+1)
	}
}

// docs/install.md names the packages of this version, which the test that types it needs.
func TestInstallPageNamesThisVersion(t *testing.T) {
	version := strings.TrimSpace(read(t, "VERSION"))
	page := read(t, "docs/install.md")
	named := regexp.MustCompile(`(?:cabrank[-_:]|cabrank-\w+-\w+-|--branch v)(\d+\.\d+\.\d+)`).FindAllStringSubmatch(page, -1)
	testkit.Want(t, len(named) >= 10, "docs/install.md names %d packages", len(named))
	for _, m := range named {
		testkit.Want(t, m[1] == version, "docs/install.md has %q, but VERSION is %s", m[0], version)
	}
}

// Decision records are numbered from 001 without a gap, and each title
// carries its number.
func TestDecisionsAreNumbered(t *testing.T) {
	entries, err := os.ReadDir("docs/decisions")
	testkit.Must(t, err)
	for i, entry := range entries {
		m := recordName.FindStringSubmatch(entry.Name())
		if m == nil {
			t.Errorf("docs/decisions/%s: the name must be NNN-words-in-lower-case.md", entry.Name())
			continue
		}
		if want := number(i + 1); m[1] != want {
			t.Errorf("docs/decisions/%s: the number must be %s, records are never removed or reused", entry.Name(), want)
		}
		if title := "# " + m[1] + " "; !strings.HasPrefix(read(t, "docs/decisions/"+entry.Name()), title) {
			t.Errorf("docs/decisions/%s: the title must begin with %q", entry.Name(), title)
		}
	}
}

func number(n int) string { return fmt.Sprintf("%03d", n) }

func read(t *testing.T, name string) string {
	t.Helper()
	text := testkit.ReadFile(t, filepath.FromSlash(name))
	return string(text)
}
