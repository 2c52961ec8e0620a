package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	// stateFile has what `make soak` knows of the packages that it has run.
	stateFile = "bin/lane/soak.json"

	// resultFile is for people, and is committed.
	resultFile = "test/soak.md"
)

// state is of one commit. A tree with changes has none that lasts.
type state struct {
	Commit   string             `json:"commit"`
	Packages map[string]outcome `json:"packages"` // by folder
}

// outcome is what the last run of a package gave.
type outcome struct {
	Seconds float64  `json:"seconds"`
	Tests   int      `json:"tests"`
	Failed  []string `json:"failed"` // tests, or the package's own failure
}

// soak runs all real tests but those of the lane, and what is statistical: a package
// at a time, alone. What has passed for this commit is not run again.
func soak(ctx context.Context, lane []promise, flags []string, out io.Writer) error {
	all, err := soaked(ctx)
	if err != nil {
		return err
	}
	s, err := readState(ctx, os.Getenv("SOAK_AGAIN") != "")
	if err != nil {
		return err
	}
	for _, dir := range slices.Sorted(maps.Keys(all)) {
		if o, ok := s.Packages[dir]; ok && len(o.Failed) == 0 {
			fmt.Fprintf(out, "lane: %s has passed for this commit\n", dir)
			continue
		}
		if s.Packages[dir], err = soakPackage(ctx, dir, all[dir], lane, flags, out); err != nil {
			return err
		}
		if err := s.write(); err != nil {
			return err
		}
	}
	return s.tell(out)
}

func soakPackage(ctx context.Context, dir, run string, lane []promise, flags []string, out io.Writer) (outcome, error) {
	fmt.Fprintf(out, "lane: %s\n", dir)
	args := append(slices.Clone(flags), "-timeout", "1h", "-run", run)
	if held := slices.DeleteFunc(slices.Clone(lane), func(p promise) bool { return p.dir != dir }); len(held) > 0 {
		args = append(args, "-skip", pattern(held))
	}
	in, pkg := split(dir)
	r, err := goTest(ctx, out, in, "bin/lane/soak/"+strings.ReplaceAll(dir, "/", "-")+".json", append(args, pkg)...)
	if err != nil {
		return outcome{}, err
	}
	o := outcome{Tests: r.leaves()}
	for _, p := range r.packages {
		o.Seconds += p.seconds
	}
	for _, n := range r.failed {
		o.Failed = append(o.Failed, n.test)
	}
	if !r.passed() && len(o.Failed) == 0 {
		o.Failed = []string{"the package"}
	}
	return o, nil
}

var (
	tagged   = regexp.MustCompile(`(?m)^//go:build .*\bsoak\b`)
	onlyLong = regexp.MustCompile(`(?m)^//go:build soak\b`)
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(t `)
)

// soaked finds the packages with the tag soak, by folder, each with what `go test -run`
// takes: the tests in files of that tag, or all where such a file has but sizes.
func soaked(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	for _, in := range modules() {
		found, err := exec.CommandContext(ctx, "scripts/test-packages.sh", `^//go:build .*\bsoak\b`, strings.TrimPrefix(in, ".")).Output()
		if err != nil {
			return nil, err
		}
		for pkg := range strings.FieldsSeq(string(found)) {
			dir := filepath.Join(in, pkg)
			if all[dir], err = testsToSoak(dir); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func testsToSoak(dir string) (run string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return "", err
	}
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		if !tagged.Match(text) {
			continue
		}
		tests := testFunc.FindAllSubmatch(text, -1)
		if len(tests) == 0 && onlyLong.Match(text) {
			return ".", nil
		}
		for _, m := range tests {
			names = append(names, string(m[1]))
		}
	}
	return "^(" + strings.Join(names, "|") + ")$", nil
}

// readState reads what is known of this commit: nothing, if it is to be run again or
// the tree has changes.
func readState(ctx context.Context, again bool) (*state, error) {
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return nil, fmt.Errorf("git rev-parse: %w", err)
	}
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ".", ":!"+resultFile).Output()
	if err != nil {
		return nil, fmt.Errorf("git status: %w", err)
	}
	fresh := &state{Commit: strings.TrimSpace(string(commit)), Packages: map[string]outcome{}}
	if len(changes) > 0 {
		fresh.Commit += " with changes"
		return fresh, nil
	}
	known := &state{}
	text, err := os.ReadFile(stateFile)
	if err != nil || json.Unmarshal(text, known) != nil || known.Commit != fresh.Commit || again {
		return fresh, nil //nolint:nilerr // what cannot be read is not known
	}
	return known, nil
}

func (s *state) write() error {
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(stateFile, text, 0o600)
}

// tell writes the table, into resultFile as well, and fails if a test has.
func (s *state) tell(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Result of make soak\n\n%s, %s, on %s/%s with %d processors.\n", s.Commit, time.Now().Format(time.DateOnly),
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	b.WriteString("\n| package | tests | seconds | failed |\n|---|--:|--:|---|\n")
	var sum outcome
	for _, dir := range slices.Sorted(maps.Keys(s.Packages)) {
		o := s.Packages[dir]
		fmt.Fprintf(&b, "| %s | %d | %.0f | %s |\n", dir, o.Tests, o.Seconds, cmp.Or(strings.Join(o.Failed, ", "), "none"))
		sum.Tests, sum.Seconds, sum.Failed = sum.Tests+o.Tests, sum.Seconds+o.Seconds, append(sum.Failed, o.Failed...)
	}
	fmt.Fprintf(&b, "| all | %d | %.0f | %d |\n", sum.Tests, sum.Seconds, len(sum.Failed))
	fmt.Fprint(out, b.String())
	if err := os.WriteFile(resultFile, []byte(b.String()), 0o644); err != nil { //nolint:gosec // it is committed
		return err
	}
	if len(sum.Failed) > 0 {
		return errors.New("tests have failed; those that passed are not run again for this commit")
	}
	return nil
}
