package cabrank_test

import (
	"go/ast"
	"go/build/constraint"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// target matches a target that people call, with what `make help` says of it.
var target = regexp.MustCompile(`(?m)^([a-z0-9-]+):[^=\n]*?(?:## (.+))?$`)

// `make help` explains every target, and those that documents and people rely
// on are there.
func TestMakeTargetsAreExplained(t *testing.T) {
	explained := map[string]bool{}
	for _, m := range target.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		testkit.Want(t, m[2] != "", "Makefile: the target %q has no ## text for make help", m[1])
		explained[m[1]] = true
	}
	for name := range strings.FieldsSeq("help build demo test lint test-unit test-real fuzz bench bench-peers bench-queue soak h2spec") {
		testkit.Want(t, explained[name], "Makefile: no target %q", name)
	}
}

// Continuous integration runs what everybody can run.
func TestCIRunsMakeTest(t *testing.T) {
	testkit.Want(t, strings.Contains(read(t, ".ci/run"), "\nmake test\n"), ".ci/run does not call make test")
}

// run is one line of the Makefile that runs tests: the tag it sets, and what it finds
// the packages by.
type run struct {
	tags []string
	find *regexp.Regexp
}

// testRuns matches such lines. The two of test/lane are apart.
var testRuns = regexp.MustCompile(`(?m)^\t@(?:cd lab && )?(?:CGO_ENABLED=0 )?(?:\.\./)?\$\(TEST\)(.*?) (?:\./\.\.\.|\$\(call packages,(.*?)(?:,lab)?\))$`)

func runs(t *testing.T) (all []run) {
	t.Helper()
	for _, m := range testRuns.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		r := run{find: regexp.MustCompile("(?m)" + m[2])}
		if _, after, ok := strings.Cut(m[1], "-tags "); ok {
			r.tags = strings.Fields(after)[:1]
		}
		if slices.Contains(strings.Fields(m[1]), "-race") {
			r.tags = append(r.tags, "race")
		}
		all = append(all, r)
	}
	// test/lane finds by this what it runs with this tag; the lane itself is a part of it.
	if strings.Contains(read(t, "Makefile"), "\n\t@go run ./test/lane soak -tags soak\n") {
		all = append(all, run{tags: []string{"soak"}, find: regexp.MustCompile(`(?m)^//go:build .*\bsoak\b`)})
	}
	testkit.Need(t, len(all) >= 4, "%d runs of tests were found in the Makefile: was it written in another way?", len(all))
	return all
}

// A test whose build tags no target of the Makefile sets never runs, and nobody sees.
func TestEveryTestIsRun(t *testing.T) {
	all := runs(t)
	for _, name := range sourceFiles(t, "_test.go") {
		text := read(t, name)
		line := regexp.MustCompile(`(?m)^//go:build .*$`).FindString(text)
		if line == "" {
			continue // in every run
		}
		want, err := constraint.Parse(line)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.ContainsFunc(all, func(r run) bool { return r.find.MatchString(text) && builds(want, r.tags) }) {
			t.Errorf("%s is built by none of the runs of the Makefile: %s", name, line)
		}
	}
}

// Each promise of docs/invariants.md about calls, header blocks and workers stands in
// test/promises.tsv with the tests that hold it; those of its tests that start a process
// are the lane of `make test-real`. TestCommandsArePromised asks the same of commands.
func TestPromisesAreHeld(t *testing.T) {
	table := read(t, "test/promises.tsv")
	for line := range strings.Lines(table) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 3 {
			t.Errorf("test/promises.tsv: three fields are wanted: %q", line)
			continue
		}
		p := tree(t)[fields[1]]
		test, below, _ := strings.Cut(fields[2], "/")
		if p == nil || !slices.ContainsFunc(p.files, func(f file) bool { return f.isTest() && f.declares(test) }) {
			t.Errorf("test/promises.tsv: %s has no %s", fields[1], test)
		}
		if script, name, _ := strings.Cut(below, "/"); (test == "TestWire" || test == "TestRank") && !hasCase(t, test, script, name) {
			t.Errorf("test/promises.tsv: there is no %s", fields[2])
		}
	}
	bullets := regexp.MustCompile(`(?m)^- (.*(?:\n  .*)*)`)
	for _, heading := range []string{"Calls", "Header blocks", "Workers"} {
		_, section, _ := strings.Cut(read(t, "docs/invariants.md"), "\n## "+heading+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		found := bullets.FindAllStringSubmatch(section, -1)
		testkit.Want(t, len(found) != 0, "docs/invariants.md promises nothing under %s", heading)
		for _, m := range found {
			words := strings.Join(strings.Fields(m[1]), " ")
			if !slices.ContainsFunc(strings.Split(table, "\n"), func(line string) bool {
				promise, _, _ := strings.Cut(line, "\t")
				return len(promise) > 25 && strings.HasPrefix(words, promise)
			}) {
				t.Errorf("test/promises.tsv has no line that begins as this promise of docs/invariants.md: %s", words)
			}
		}
	}
}

// declares tells whether the file has such a function.
func (f file) declares(name string) bool {
	return slices.ContainsFunc(f.syntax.Decls, func(d ast.Decl) bool {
		fn, ok := d.(*ast.FuncDecl)
		return ok && fn.Name.Name == name
	})
}

// A failure that a second try has hidden once is an accident; who sees it again mends
// the test, or takes it out of the lane.
func TestNoFlakeStandsTwice(t *testing.T) {
	seen := map[string]bool{}
	for i, line := range strings.Split(strings.TrimSuffix(read(t, "test/flakes.tsv"), "\n"), "\n") {
		fields := strings.Split(line, "\t")
		if len(fields) != 4 {
			t.Errorf("test/flakes.tsv: date, commit, test and message are wanted: %q", line)
			continue
		}
		if i > 0 && seen[fields[2]] {
			t.Errorf("%s stands twice in test/flakes.tsv: mend it, or take it out of test/promises.tsv", fields[2])
		}
		seen[fields[2]] = true
	}
}

// builds reports whether a file is built with these tags, on Linux or elsewhere.
func builds(want constraint.Expr, tags []string) bool {
	on := func(system string) bool {
		return want.Eval(func(tag string) bool { return tag == system || slices.Contains(tags, tag) })
	}
	return on("linux") || on("darwin")
}

// `make build` inlines functions only in the standard library and in what HOT names: that
// has to be all that calls go through. gRPC's library is not there: it asks for health and
// for descriptions, and is what the lab's own callers are; nor is go-jose, which looks at
// tokens that are not remembered.
func TestCallsGoThroughInlinedCode(t *testing.T) {
	out, err := exec.Command("make", "--silent", "--eval", "hot: ; @echo $(HOT)", "hot").Output()
	testkit.Must(t, err)
	hot := strings.Fields(string(out))
	calls := []string{"./internal/relay", "./internal/web", "./internal/socket", "./internal/methods", "./internal/accesslog", "./internal/broker/redis"}
	list := append([]string{"list", "-deps", "-tags", "grpcnotrace,nethttpomithttp2", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}"}, calls...)
	if out, err = exec.Command("go", list...).Output(); err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(name, "google.golang.org/grpc") || strings.HasPrefix(name, "google.golang.org/genproto/") || strings.HasPrefix(name, "github.com/go-jose/") || name == "golang.org/x/net/http2" || strings.HasPrefix(name, "golang.org/x/net/internal/") {
			continue
		}
		if !slices.ContainsFunc(hot, func(pattern string) bool {
			folder, all := strings.CutSuffix(pattern, "/...")
			return name == pattern || all && (name == folder || strings.HasPrefix(name, folder+"/"))
		}) {
			t.Errorf("calls go through %s, which HOT in the Makefile does not name", name)
		}
	}
}
